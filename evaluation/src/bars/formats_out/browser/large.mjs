// Reports of many findings, or of a long recording: how soon they are there, and whether they answer.
//
// A task of the page's main thread that takes longer than a fifth of a second is felt. While a page loads, the browser itself
// reads its elements in tasks that the page cannot divide, so these have a limit of their own.

const PAINT = 1_000;
const LOADED = 5_000;
const LOADING_TASK = 1_000;
const TASK = 200;

/** Figures with their limits, what was not shown, and what went wrong. */
export async function answers(opened, kind) {
  const { page, wrong } = await opened({
    before: (page) => page.evaluateOnNewDocument(() => {
      window.tasks = [];
      const seen = (list) => window.tasks.push(...list.getEntries().map((one) => [one.startTime, one.duration]));
      new PerformanceObserver(seen).observe({ type: "longtask", buffered: true });
    }),
  });
  await idle(page);
  const load = await page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity,
    loaded: performance.getEntriesByType("navigation")[0].loadEventEnd,
    longest: Math.max(0, ...window.tasks.splice(0).map(([, duration]) => duration)),
  }));
  const faults = [];
  // What is to say that there was no long task has to see one.
  await acted(page, () => { for (const end = performance.now() + 100; performance.now() < end;); });
  await idle(page);
  if (!(await page.evaluate(() => window.tasks.splice(0).some(([, duration]) => duration >= 100)))) {
    faults.push("a task of 100 ms is not seen");
  }
  await (kind === "many" ? searched(page, faults) : stepped(page, faults));
  await idle(page);
  const longest = await page.evaluate(() => Math.max(0, ...window.tasks.map(([, duration]) => duration)));
  const figures = [
    { title: "first paint", limit: PAINT, value: load.paint },
    { title: "loaded", limit: LOADED, value: load.loaded },
    { title: "longest task while it loads", limit: LOADING_TASK, value: load.longest },
    { title: "longest task after that", limit: TASK, value: longest },
  ].map((figure) => ({ ...figure, unit: "ms" }));
  await page.close();
  return { figures, faults, wrong };
}

/** Until the page has nothing to do: observers of tasks are told behind them. */
const idle = (page) => page.evaluate(() => new Promise((resolve) => setTimeout(() => requestIdleCallback(() => resolve()), 500)));

/** Does it in a task of the page: those of the debugger are not told to observers. */
const acted = (page, act, argument = null) =>
  page.evaluate(`new Promise((resolve) => setTimeout(() => { (${act})(${JSON.stringify(argument)}); resolve(); }))`);

/** Filters by the id of one of the last findings, unfolds it, and scrolls through all. */
async function searched(page, faults) {
  const { id, all } = await page.evaluate(() => {
    const articles = document.getElementsByTagName("article");
    return { id: articles[articles.length - 3].id, all: articles.length };
  });
  await page.type("#filter", id);
  const count = `1 of ${all} findings`;
  const isCounted = (words) => document.getElementById("count").textContent === words;
  await page.waitForFunction(isCounted, { timeout: 60_000 }, count).catch(() => faults.push(`the filter does not find ${id}`));
  await acted(page, (id) => { document.getElementById(id).querySelector("details").open = true; }, id);
  const side = `[id="${id}"] .sides h3`;
  await page.waitForSelector(side, { timeout: 5_000 }).catch(() => faults.push("what is unfolded is not shown"));
  await acted(page, () => {
    const filter = document.getElementById("filter");
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
  });
  const isWhole = (words) => document.getElementById("count").textContent === words;
  const whole = `${all} of ${all} findings`;
  await page.waitForFunction(isWhole, { timeout: 60_000 }, whole).catch(() => faults.push("not all come back"));
  for (let part = 1; part <= 10; part += 1) {
    await acted(page, (part) => scrollTo(0, (document.documentElement.scrollHeight * part) / 10), part);
    await idle(page);
  }
}

/** Unfolds the whole recording, goes to its end and to its middle, and steps there. */
async function stepped(page, faults) {
  await acted(page, () => { document.querySelector("#whole details").open = true; });
  await page.waitForSelector("#whole .row", { timeout: 10_000 }).catch(() => faults.push("the whole recording is not drawn"));
  const rows = await page.$eval("#whole .lanes", (box) => Number(box.getAttribute("aria-rowcount")));
  const now = () => page.evaluate(() => Number(document.querySelector("#whole .row.now")?.getAttribute("aria-rowindex")));
  await page.focus("#whole .lanes");
  await page.keyboard.press("End");
  if ((await now()) !== rows) faults.push(`End goes to row ${await now()} of ${rows}`);
  await acted(page, (row) => {
    const input = document.querySelector("#whole input");
    input.value = row;
    input.dispatchEvent(new Event("change"));
  }, Math.floor(rows / 2));
  await page.focus("#whole .lanes");
  for (let step = 0; step < 50; step += 1) await page.keyboard.press("ArrowDown");
  if ((await now()) !== Math.floor(rows / 2) + 50) faults.push(`50 steps from the middle go to row ${await now()}`);
  for (let part = 1; part <= 10; part += 1) {
    await acted(page, (part) => {
      const box = document.querySelector("#whole .lanes");
      box.scrollTop = (box.scrollHeight * part) / 10;
    }, part);
    await idle(page);
    if (!(await page.$("#whole .row"))) faults.push("nothing is drawn while it scrolls");
  }
}
