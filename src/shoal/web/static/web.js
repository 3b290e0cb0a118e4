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
