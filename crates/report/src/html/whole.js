"use strict";

// The whole recording: rows of one height, of which those in sight are drawn. Its numbers are read in parts.
{
  const HEIGHT = 28;
  const KEPT = 8;
  const section = document.getElementById("whole");
  const parts = document.getElementsByClassName("part");
  let names;
  const known = new Map();

  // The rows of a part, with what each thread holds at each of them.
  const read = (number) => {
    if (known.has(number)) return known.get(number);
    const script = parts[number];
    const numbers = JSON.parse(script.textContent);
    const held = JSON.parse(script.dataset.held);
    const rows = [];
    let event = 0;
    for (let at = 0; at < numbers.length; at += 8) {
      const [step, thread, does, place, back, of, holds, finding] = numbers.slice(at, at + 8);
      event += step;
      held[thread] = holds;
      rows.push({ event, thread, does, place, after: back ? event - back : 0, of, holds, finding, held: [...held] });
    }
    known.set(number, rows);
    if (known.size > KEPT) known.delete(known.keys().next().value);
    return rows;
  };
  const rowAt = (number) => read(Math.floor(number / names.part))[number % names.part];

  const element = (name, classes, text, parent) => {
    const made = document.createElement(name);
    if (classes) made.className = classes;
    if (text) made.textContent = text;
    parent?.append(made);
    return made;
  };

  const words = (row) => {
    const all = [`${names.threads[row.thread]}: ${names.words[row.does]}`];
    if (row.place) all.push(names.places[row.place - 1]);
    if (row.holds) all.push(`holds ${names.held[row.holds]}`);
    if (row.after) all.push(`after event ${row.after} of ${names.threads[row.of]}`);
    return all;
  };

  const draw = (number, now) => {
    const row = rowAt(number);
    const line = element("div", `row${row.finding ? " of-finding" : ""}${number === now ? " now" : ""}`);
    line.style.top = `${number * HEIGHT}px`;
    line.setAttribute("role", "row");
    line.setAttribute("aria-rowindex", number + 1);
    if (number === now) line.setAttribute("aria-current", "step");
    element("span", "event", String(row.event), line).setAttribute("role", "rowheader");
    const graph = element("span", "graph", "", line);
    graph.setAttribute("role", "cell");
    row.held.forEach((held, lane) => {
      const strand = element("i", `${held ? "held" : ""}${lane === row.thread ? " own" : ""}`, "", graph);
      strand.style.setProperty("--lane", lane);
    });
    if (row.after) {
      const arrow = element("b", row.of > row.thread ? "left" : "", "", graph);
      arrow.style.setProperty("--lane", Math.min(row.of, row.thread));
      arrow.style.setProperty("--across", Math.abs(row.of - row.thread));
    }
    const cell = element("span", "does", "", line);
    cell.setAttribute("role", "cell");
    const [does, ...further] = words(row);
    element("span", "until", does, cell);
    if (further.length) element("span", "after", ` ${further.join(", ")}`, cell);
    return line;
  };

  const build = () => {
    names = JSON.parse(document.getElementById("names").textContent);
    const drawn = section.querySelector(".drawn");
    const stepper = element("div", "stepper", "", drawn);
    const button = (text, act) => {
      const made = element("button", "", text, stepper);
      made.type = "button";
      made.addEventListener("click", act);
      stepper.append(" ");
    };
    const box = element("div", "lanes", "", drawn);
    box.tabIndex = 0;
    box.setAttribute("role", "table");
    box.setAttribute("aria-label", "The whole recording; arrow keys step through it");
    box.setAttribute("aria-rowcount", names.moments);
    box.style.setProperty("--lanes", names.threads.length);
    box.style.height = `min(30rem, ${names.moments * HEIGHT + 20}px)`;
    const all = element("div", "all", "", box);
    all.setAttribute("role", "rowgroup");
    all.style.height = `${names.moments * HEIGHT}px`;
    let now = -1;
    let [from, to] = [0, 0];
    const show = (isNew) => {
      const first = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - 5);
      const behind = Math.min(names.moments, Math.ceil((box.scrollTop + box.clientHeight) / HEIGHT) + 5);
      if (!isNew && first === from && behind === to) return;
      [from, to] = [first, behind];
      const rows = [];
      for (let number = from; number < to; number += 1) rows.push(draw(number, now));
      all.replaceChildren(...rows);
    };
    const state = element("p", "state", "");
    state.setAttribute("role", "status");
    const step = (next) => {
      now = Math.min(Math.max(next, 0), names.moments - 1);
      if (now * HEIGHT < box.scrollTop || (now + 1) * HEIGHT > box.scrollTop + box.clientHeight) {
        box.scrollTop = (now + 0.5) * HEIGHT - box.clientHeight / 2;
      }
      show(true);
      const row = rowAt(now);
      const locks = row.held.map((held, lane) => `${names.threads[lane]} holds ${held ? names.held[held] : "nothing"}`);
      state.textContent = `Event ${row.event}, ${words(row).join(", ")}. After it: ${locks.join("; ")}`;
    };
    const finding = () => step(names.findings.find((number) => number > now) ?? names.findings[0] ?? now);
    button("Previous", () => step(now - 1));
    button("Next", () => step(now + 1));
    if (names.findings.length) button("To a finding", finding);
    const label = element("label", "", "Go to row ", stepper);
    const asked = element("input", "", "", label);
    Object.assign(asked, { type: "number", min: 1, max: names.moments });
    asked.addEventListener("change", () => asked.value && step(asked.value - 1));
    stepper.append(state);
    box.addEventListener("scroll", () => requestAnimationFrame(() => show(false)));
    addEventListener("resize", () => show(false));
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const page = Math.floor(box.clientHeight / HEIGHT) - 1;
      const keys = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + page, PageUp: now - page, Home: 0 };
      const next = { ...keys, End: names.moments - 1 }[event.key];
      if (next === undefined && event.key !== "Enter") return;
      event.preventDefault();
      if (event.key === "Enter") finding();
      else step(next);
    });
    show(true);
  };

  section?.querySelector("details").addEventListener("toggle", (event) => {
    if (event.target.open && !names) build();
  });
}
