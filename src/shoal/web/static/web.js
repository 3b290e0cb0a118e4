"use strict";
// The pages work without this script; it only saves reloading them.

// A job: follow its progress and what it has found, then go where it leads.
let drawnSoFar = 0;
let drawing = false;
async function redraw(found) {
  const live = document.getElementById("live");
  if (!live || drawing) return;
  drawing = true;
  const page = new DOMParser().parseFromString(await (await fetch(job.dataset.page)).text(), "text/html");
  const part = page.getElementById("live");
  if (part) live.replaceChildren(...document.importNode(part, true).childNodes);
  drawnSoFar = found;
  setTimeout(() => { drawing = false; }, 400);
}
const job = document.getElementById("job");
if (job) {
  const events = new EventSource(job.dataset.events);
  events.onmessage = (event) => {
    const told = JSON.parse(event.data);
    const what = document.getElementById("what");
    const bar = document.getElementById("bar");
    const seconds = document.getElementById("seconds");
    if (what && told.what) what.textContent = told.what;
    if (bar) bar.value = told.share;
    if (seconds) seconds.textContent = `${told.seconds.toFixed(1)} s`;
    if (told.found && told.found !== drawnSoFar) redraw(told.found);
    if (["done", "failed", "cancelled"].includes(told.state)) {
      events.close();
      location.replace(job.dataset.page);
    }
  };
}

// A hierarchy that is being described: show what it would give while one types.
const preview = document.getElementById("preview");
let last = 0;
async function tryOut(form) {
  const mine = ++last;
  const again = () => { if (mine === last) tryOut(form); };
  const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
  const found = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
  const part = found.getElementById("preview") || found.querySelector(".problem");
  if (found.getElementById("job")) setTimeout(again, 500); // it is still being built
  if (mine === last && part) preview.replaceChildren(...document.importNode(part, true).childNodes);
}
for (const form of document.querySelectorAll("form.try")) {
  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    if (form.checkValidity()) waiting = setTimeout(() => tryOut(form), 300);
  });
}

// Values of a hierarchy are dragged from group to group; ticking them and choosing a group does the same.
const groups = document.getElementById("groups");
if (groups) {
  let dragged = null;
  for (const member of groups.querySelectorAll(".member")) {
    member.addEventListener("dragstart", () => { dragged = member; });
  }
  for (const group of groups.querySelectorAll(".group")) {
    group.addEventListener("dragover", (event) => event.preventDefault());
    group.addEventListener("drop", (event) => {
      event.preventDefault();
      if (!dragged) return;
      dragged.querySelector("input").checked = true;
      document.getElementById("to").value = group.dataset.group;
      groups.requestSubmit();
    });
  }
}

// Sliders tell their value.
for (const slider of document.querySelectorAll("input[type=range]")) {
  slider.addEventListener("input", () => { slider.nextElementSibling.value = slider.value; });
}

// A mark in a chart leads to its row in a table; here its figures and its button are shown in a dialog.
const dialog = document.querySelector("svg.chart a") ? document.createElement("dialog") : null;
if (dialog) {
  dialog.setAttribute("aria-labelledby", "mark-h");
  document.querySelector("main").append(dialog);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}
function showRow(row) {
  const heads = [...row.closest("table").querySelectorAll("thead th")];
  const cells = [...row.children];
  const title = document.createElement("h2");
  title.id = "mark-h";
  title.textContent = cells[0].textContent;
  const list = document.createElement("dl");
  heads.slice(1).forEach((head, i) => {
    const term = document.createElement("dt");
    const value = document.createElement("dd");
    term.textContent = head.textContent;
    value.textContent = cells[i + 1] ? cells[i + 1].textContent : "";
    list.append(term, value);
  });
  const bar = document.createElement("p");
  bar.className = "bar";
  const button = row.querySelector("button");
  if (button) {
    const take = document.createElement("button");
    take.type = "button";
    take.textContent = button.textContent;
    take.addEventListener("click", () => button.click());
    bar.append(take);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.className = "quiet";
  close.textContent = document.body.dataset.close;
  close.addEventListener("click", () => dialog.close());
  bar.append(close);
  dialog.replaceChildren(title, list, bar);
  dialog.showModal();
}
for (const mark of document.querySelectorAll("svg.chart a")) {
  mark.addEventListener("click", (event) => {
    const row = document.getElementById(mark.getAttribute("href").slice(1));
    if (!row) return;
    event.preventDefault();
    showRow(row);
  });
}
