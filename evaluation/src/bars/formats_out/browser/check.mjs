// Opens HTML reports in headless Chromium, and prints what was found: one JSON object, a list of bars.
//
// node check.mjs CONFIGURATION, a file of JSON: `chromium` (the program), `goldens` and `results` (folders), `renew` (write
// goldens instead of comparing) and `pages`, a list of `name`, `file` and `kind` ("finding", "many" or "long").
import { readFile } from "node:fs/promises";
import puppeteer from "puppeteer-core";
import { accessible } from "./accessible.mjs";
import { compared } from "./golden.mjs";
import { answers } from "./large.mjs";
import { drawn, keyboard, narrow, printed } from "./reading.mjs";

const configuration = JSON.parse(await readFile(process.argv[2], "utf8"));
const bars = [];
const bar = (name, met, found) => bars.push({ name, met, found: String(found).slice(0, 300) });

/** A page of its own, without a network, that notes what goes wrong. */
async function opened(browser, { file, scheme = "light", width = 1200, height = 900, before = async () => {} }) {
  const page = await browser.newPage();
  const wrong = [];
  const own = `file://${file}`;
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("request", (request) => {
    // A link into the page itself asks for nothing.
    if (request.url().split("#")[0] !== own) wrong.push(`asked for ${request.url()}`);
  });
  await page.setOfflineMode(true);
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await before(page);
  await page.goto(own, { waitUntil: "load", timeout: 120_000 });
  return { page, wrong };
}

async function finding(browser, { name, file }) {
  const wrong = [];
  const open = async (options = {}) => {
    const one = await opened(browser, { file, ...options });
    one.close = async () => {
      wrong.push(...one.wrong);
      await one.page.close();
    };
    return one;
  };
  const violations = [];
  for (const scheme of ["light", "dark"]) {
    for (const [width, unfolded] of [[1200, false], [1200, true], [400, true]]) {
      const one = await open({ scheme, width });
      violations.push(...(await accessible(one.page, unfolded)).map((rule) => `${scheme}, ${width} px: ${rule}`));
      await one.close();
    }
  }
  bar(`${name}: axe-core finds nothing, light and dark, folded, unfolded and narrow`, !violations.length, list(violations));
  for (const [title, check, options] of [
    ["lanes, arrows, locks held and accesses are drawn", drawn, {}],
    ["the keyboard reaches everything, visibly, and steps", keyboard, {}],
    ["400 px wide without scrolling the page sideways", narrow, { width: 400 }],
  ]) {
    const one = await open(options);
    const { faults, said } = await check(one.page);
    bar(`${name}: ${title}`, !faults.length, faults.length ? list(faults) : said);
    await one.close();
  }
  const one = await open();
  const { faults, said } = await printed(one.page, `${configuration.results}/${name}.pdf`);
  bar(`${name}: nothing is cut off on paper`, !faults.length, faults.length ? list(faults) : said);
  await one.close();
  for (const [view, options] of [["light", {}], ["dark", { scheme: "dark" }], ["narrow", { width: 400 }]]) {
    const one = await open(options);
    const result = await compared(one.page, `${name}-${view}`, configuration);
    bar(`${name}: looks as its golden image, ${view}`, result.met, result.found);
    await one.close();
  }
  bar(`${name}: no error, and nothing asked for but the file`, !wrong.length, list(wrong));
}

async function large(browser, { name, file, kind }) {
  const once = () => answers((options) => opened(browser, { file, ...options }), kind);
  // Other programs can only make it slower.
  const [measured, again] = [await once(), await once()];
  for (const [number, { title, limit, value, unit }] of measured.figures.entries()) {
    const least = Math.min(value, again.figures[number].value);
    bar(`${name}: ${title} (at most ${limit} ${unit})`, least <= limit, `${Math.round(least)} ${unit}`);
  }
  const [faults, wrong] = [[...measured.faults, ...again.faults], [...measured.wrong, ...again.wrong]];
  bar(`${name}: what is asked for is shown`, !faults.length, list(faults));
  bar(`${name}: no error, and nothing asked for but the file`, !wrong.length, list(wrong));
}

const list = (faults) => (faults.length ? `${faults.length}: ${[...new Set(faults)].join("; ")}` : "none");

const browser = await puppeteer.launch({
  executablePath: configuration.chromium,
  headless: "shell",
  args: ["--no-sandbox", "--font-render-hinting=none", "--force-color-profile=srgb", "--disable-lcd-text"],
});
try {
  for (const page of configuration.pages) {
    if (page.kind === "finding") await finding(browser, page);
    else await large(browser, page);
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(bars));
