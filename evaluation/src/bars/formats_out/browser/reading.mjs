// What a reader of a small report needs: it is drawn, reached by keys, fits a narrow window, and paper.

/** Whether what a timeline is made of has an extent, and lies in its own cell. */
export async function drawn(page) {
  return page.evaluate(() => {
    const faults = [];
    const table = document.querySelector("table.timeline");
    if (!table) return { faults: ["no timeline"], said: "" };
    const extent = (element, pseudo) => {
      const style = getComputedStyle(element, pseudo);
      return parseFloat(style.width) > 0 && parseFloat(style.height) > 0 && style.display !== "none";
    };
    const counts = {};
    for (const [what, selector, pseudo] of [
      ["lanes", ".graph i"], ["dots", ".graph i.own", "::after"], ["locks held", ".graph i.held"], ["arrows", ".graph b"],
      ["names of lanes", ".graph .head"], ["accesses", ".of-finding .until"], ["names of locks held", ".holds"],
    ]) {
      const all = [...document.querySelectorAll(`table.timeline ${selector}`)];
      counts[what] = all.length;
      const bare = all.filter((one) => {
        if (pseudo) return !extent(one, pseudo);
        const { width, height } = one.getBoundingClientRect();
        return width === 0 || height === 0;
      });
      if (!all.length) faults.push(`no ${what}`);
      if (bare.length) faults.push(`${bare.length} ${what} without an extent`);
      const outside = all.filter((one) => {
        const [own, cell] = [one, one.closest("th, td")].map((it) => it.getBoundingClientRect());
        return own.left < cell.left - 1 || own.right > cell.right + 1;
      });
      if (outside.length) faults.push(`${outside.length} ${what} outside their cells`);
    }
    for (const heading of ["Recorded execution", "Forced execution", "Why it is sure", "Make it happen again"]) {
      const all = [...document.querySelectorAll("h3")].map((one) => one.textContent);
      if (!all.some((one) => one.startsWith(heading))) faults.push(`nothing is headed “${heading}”`);
    }
    return { faults, said: Object.entries(counts).map(([what, count]) => `${count} ${what}`).join(", ") };
  });
}

/** Tab through the page, then the keys of a timeline and of the whole recording. */
export async function keyboard(page) {
  const faults = [];
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input, summary, [tabindex]")];
    const seen = all.filter((one) => one.tabIndex >= 0 && one.checkVisibility());
    seen.forEach((one, number) => { one.dataset.number = number; });
    return seen.length;
  });
  const reached = [];
  for (let tab = 0; tab < wanted + 5; tab += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const one = document.activeElement;
      const style = getComputedStyle(one);
      const visible = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
      const name = `${one.tagName} ${one.className}`;
      return { number: one.dataset.number, visible, name, isInView: one.getBoundingClientRect().top < innerHeight };
    });
    if (focused.number === undefined || reached.includes(Number(focused.number))) continue;
    reached.push(Number(focused.number));
    if (!focused.visible) faults.push(`focus is invisible at ${focused.name}`);
    if (!focused.isInView) faults.push(`focus is out of sight at ${focused.name}`);
  }
  if (reached.length !== wanted) faults.push(`${wanted - reached.length} of ${wanted} not reached`);
  if (reached.some((number, at) => number !== at)) faults.push("not in the order of the page");
  const at = () => page.evaluate(() => {
    const rows = [...document.querySelectorAll("table.timeline")[0].tBodies[0].rows];
    return { now: rows.findIndex((row) => row.ariaCurrent === "step"), last: rows.length - 1,
      state: document.querySelector(".state").textContent };
  });
  await page.focus("table.timeline");
  for (const [key, expected] of [["ArrowDown", () => 0], ["ArrowDown", () => 1], ["ArrowUp", () => 0], ["End", (end) => end]]) {
    await page.keyboard.press(key);
    const { now, last, state } = await at();
    if (now !== expected(last)) faults.push(`${key} goes to row ${now}`);
    if (!state) faults.push(`${key} tells nothing`);
  }
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  if (!(await page.evaluate(() => document.querySelector("tr.now")?.classList.contains("of-finding")))) {
    faults.push("Enter does not go to an access of the finding");
  }
  await page.focus("#whole summary");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#whole .row", { timeout: 5_000 }).catch(() => faults.push("the whole recording is not drawn"));
  await page.focus("#whole .lanes");
  await page.keyboard.press("End");
  if (!(await page.$("#whole .row.now"))) faults.push("End does not step through the whole recording");
  return { faults, said: `${reached.length} of ${wanted} elements` };
}

/** No page wider than its window, with everything unfolded. */
export async function narrow(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
  const { wide, window: all } = await page.evaluate(() => ({ wide: document.scrollingElement.scrollWidth, window: innerWidth }));
  return { faults: wide > all ? [`${wide} px wide`] : [], said: `${wide} px` };
}

/** Everything is unfolded on paper, and no box cuts off what it holds. The file is for another reader. */
export async function printed(page, file) {
  await page.emulateMediaType("print");
  await page.pdf({ path: file, format: "A4", margin: { top: "15mm", bottom: "15mm", left: "15mm", right: "15mm" } });
  // The width of A4 less its margins.
  await page.setViewport({ width: 680, height: 1000 });
  return page.evaluate(() => {
    const faults = [];
    const folded = [...document.querySelectorAll("article details")].filter((details) => !details.open);
    if (folded.length) faults.push(`${folded.length} folded`);
    const isShown = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0;
    const shown = [...document.querySelectorAll("body *")].filter(isShown);
    for (const one of shown) {
      const style = getComputedStyle(one);
      const name = `${one.tagName} ${one.className}`;
      if (style.overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1) faults.push(`cut off at the side: ${name}`);
      if (style.overflowY !== "visible" && one.scrollHeight > one.clientHeight + 1) faults.push(`cut off below: ${name}`);
      if (one.getBoundingClientRect().right > innerWidth + 1) faults.push(`beyond the paper: ${name}`);
    }
    return { faults, said: `${shown.length} elements` };
  });
}
