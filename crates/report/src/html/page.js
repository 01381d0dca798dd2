"use strict";

// Only findings that contain what is typed.
const filter = document.getElementById("filter");
if (filter) {
  const findings = [...document.querySelectorAll("article")].map((article) => [article, article.textContent.toLowerCase()]);
  const count = document.getElementById("count");
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    let shown = 0;
    for (const [article, text] of findings) {
      article.hidden = !text.includes(wanted);
      shown += article.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${findings.length} findings`;
  });
}

// The arrow keys step through a schedule, Home and End go to its ends.
document.addEventListener("keydown", (event) => {
  const table = event.target.closest?.(".lanes table");
  if (!table) return;
  const turns = [...table.tBodies[0].rows];
  const now = turns.findIndex((turn) => turn.classList.contains("now"));
  const next = { ArrowDown: now + 1, ArrowUp: now < 0 ? 0 : now - 1, Home: 0, End: turns.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  if (now >= 0) {
    turns[now].classList.remove("now");
    turns[now].removeAttribute("aria-current");
  }
  const turn = turns[Math.min(Math.max(next, 0), turns.length - 1)];
  turn.classList.add("now");
  turn.setAttribute("aria-current", "step");
  turn.scrollIntoView({ block: "nearest" });
});

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
  }
});

// A link to a finding unfolds it.
const unfold = () => {
  const details = document.getElementById(location.hash.slice(1))?.querySelector("details");
  if (details) details.open = true;
};
addEventListener("hashchange", unfold);
unfold();

// What is folded is printed, too.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
