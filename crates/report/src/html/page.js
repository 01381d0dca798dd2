"use strict";

// Long work goes in slices, so that the page answers meanwhile. `await slice()` gives way when one is over.
const LONGEST_SLICE = 12;
let sliceBegan = performance.now();
const slice = () => {
  if (performance.now() - sliceBegan < LONGEST_SLICE) return undefined;
  return new Promise((resolve) => {
    setTimeout(() => {
      sliceBegan = performance.now();
      resolve();
    });
  });
};

// Findings behind the first stand as text in the page, and become elements when they are unfolded.
const textOf = (article) => {
  const body = article.querySelector("noscript.body");
  if (!body) return article.textContent;
  const template = document.createElement("template");
  template.innerHTML = body.textContent;
  return `${article.textContent} ${template.content.textContent}`;
};
const unpack = (details) => {
  const body = details.querySelector(":scope > noscript.body");
  if (!body) return;
  body.insertAdjacentHTML("afterend", body.textContent);
  body.remove();
  showSteppers(details);
};

// Only findings that contain what is typed.
const filter = document.getElementById("filter");
if (filter) {
  const articles = [...document.getElementsByTagName("article")];
  const texts = new Array(articles.length);
  const count = document.getElementById("count");
  let asked = 0;
  filter.addEventListener("input", async () => {
    const own = ++asked;
    const wanted = filter.value.toLowerCase();
    let shown = 0;
    for (const [number, article] of articles.entries()) {
      texts[number] ??= textOf(article).toLowerCase();
      const isHidden = !texts[number].includes(wanted);
      if (article.hidden !== isHidden) article.hidden = isHidden;
      shown += isHidden ? 0 : 1;
      await slice();
      // Something else was typed meanwhile.
      if (own !== asked) return;
    }
    count.textContent = `${shown} of ${articles.length} findings`;
  });
}

// A table is stepped through by the arrow keys, Home and End, and by its buttons.
const stepTo = (table, next) => {
  const rows = table.tBodies[0].rows;
  const now = table.querySelector("tr.now");
  now?.classList.remove("now");
  now?.removeAttribute("aria-current");
  const row = rows[Math.min(Math.max(next, 0), rows.length - 1)];
  row.classList.add("now");
  row.setAttribute("aria-current", "step");
  intoView(table.parentElement, row, table.tHead.offsetHeight);
  const state = table.parentElement.previousElementSibling?.querySelector(".state");
  if (state) state.textContent = stateAt(rows, row);
};
// Within its box alone: the page stays where it is.
const intoView = (box, row, covered) => {
  if (row.offsetTop - covered < box.scrollTop) box.scrollTop = row.offsetTop - covered;
  const below = row.offsetTop + row.offsetHeight - box.clientHeight;
  if (below > box.scrollTop) box.scrollTop = below;
};
const stateAt = (rows, row) => {
  const holds = new Map();
  for (const one of rows) {
    holds.set(one.dataset.thread, one.querySelector(".holds")?.textContent ?? "holds nothing");
    if (one === row) break;
  }
  const event = row.cells[0].textContent;
  const where = event === "–" ? "At the end" : `After event ${event}`;
  return `${where}: ${[...holds].map(([thread, held]) => `${thread} ${held}`).join("; ")}`;
};
const current = (table) => [...table.tBodies[0].rows].findIndex((row) => row.classList.contains("now"));
const ofFinding = (table) => {
  const rows = [...table.tBodies[0].rows];
  const now = current(table);
  const next = rows.findIndex((row, number) => number > now && row.classList.contains("of-finding"));
  return next >= 0 ? next : rows.findIndex((row) => row.classList.contains("of-finding"));
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const table = event.target.closest?.(".lanes > table");
  if (!table) return;
  const now = current(table);
  const last = table.tBodies[0].rows.length - 1;
  const next = { ArrowDown: now + 1, ArrowUp: now - 1, Enter: ofFinding(table), Home: 0, End: last }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  stepTo(table, next);
});
document.addEventListener("click", (event) => {
  const step = event.target.dataset?.step;
  const table = event.target.closest?.(".stepper")?.nextElementSibling?.querySelector("table");
  if (!step || !table) return;
  const now = current(table);
  stepTo(table, { previous: now - 1, next: now + 1, finding: ofFinding(table) }[step]);
});
// What matters is in sight when a finding is unfolded.
function showSteppers(within) {
  for (const stepper of within.querySelectorAll(".stepper")) {
    stepper.hidden = false;
    const table = stepper.nextElementSibling?.querySelector("table");
    const row = table?.querySelector("tr.of-finding");
    if (row) intoView(table.parentElement, row, table.tHead.offsetHeight);
  }
}
document.addEventListener("toggle", (event) => {
  if (event.target.open && event.target.parentElement?.tagName === "ARTICLE") {
    unpack(event.target);
    showSteppers(event.target);
  }
}, true);
document.querySelectorAll("article > details[open]").forEach(showSteppers);

// Commands are copied by their buttons.
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.(".again button");
  if (!button) return;
  const command = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(command.textContent);
    button.textContent = "Copied";
  } catch {
    // Pages from disk may not write to the clipboard everywhere: what is selected can be copied by hand.
    getSelection().selectAllChildren(command);
    button.textContent = "Selected";
  }
});

// A link to a finding unfolds it.
const unfold = () => {
  const details = document.getElementById(location.hash.slice(1))?.querySelector("details");
  if (details) details.open = true;
};
addEventListener("hashchange", unfold);
unfold();

// What is folded is printed, too, but for findings that stand as text.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("article details")) {
    if (!details.querySelector(":scope > noscript.body")) details.open = true;
  }
});
