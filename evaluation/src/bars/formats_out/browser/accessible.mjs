// axe-core's default rules.
import { createRequire } from "node:module";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** The rules that are violated, each with the first element. `unfolded`: with everything open, and a step taken. */
export async function accessible(page, unfolded) {
  if (unfolded) {
    await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
    // What is unfolded is drawn behind the event that tells it.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
    await page.evaluate(() => document.querySelectorAll("[data-step=finding]").forEach((button) => button.click()));
  }
  await page.addScriptTag({ path: AXE });
  const violations = await page.evaluate(async () => (await window.axe.run(document)).violations.map((rule) => {
    const [first] = rule.nodes;
    return `${rule.id} at ${first.target.join(" ")} (${rule.nodes.length})`;
  }));
  return violations;
}
