// What can be scrolled sideways can be scrolled by keys.
const reachable = () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("load", reachable);
addEventListener("resize", reachable);
addEventListener("toggle", reachable, true); // of a folded part
