"use strict";
// The pages work without this script; it only saves reloading them.

// A job: follow its progress, then go where it leads.
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
  const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
  const found = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
  const part = found.getElementById("preview") || found.querySelector(".problem");
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

// The frontier, drawn so that its points can be chosen; without this the table below it does the same.
const chart = document.getElementById("vega");
async function draw() {
  const { spec, asked } = await (await fetch(chart.dataset.frontier)).json();
  const place = document.createElement("div");
  chart.replaceChildren(place);
  const options = { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: false, mode: "vega" };
  const { view } = await window.vegaEmbed(place, spec, options);
  const svg = place.querySelector("svg");
  svg.classList.add("chart");
  // To a screen reader the chart is one picture: the table below it has its points.
  for (const part of svg.querySelectorAll("[role], [aria-roledescription], [aria-label]")) {
    for (const name of ["role", "aria-roledescription", "aria-label"]) part.removeAttribute(name);
  }
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", document.getElementById("frontier-d").textContent);
  view.addEventListener("click", (event, item) => {
    const point = item && item.datum && item.datum.asked ? asked.indexOf(item.datum.asked) : -1;
    const row = document.getElementById(`point-${point}`);
    if (row && row.querySelector("button")) row.querySelector("button").click();
  });
}
if (chart) window.addEventListener("load", () => { if (window.vegaEmbed) draw(); });
