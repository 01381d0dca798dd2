// Screenshots against golden images, with tolerance: both are made small and grey, so that hinting of fonts and a word that
// differs do not count, and what is not drawn does.
import { readFile, writeFile } from "node:fs/promises";
import { PNG } from "pngjs";

/** Pixels of the screen that become one, in both directions. */
const SMALLER = 10;
/** Difference of grey from which a pixel counts, of 255; and the share of pixels that may differ. */
const THRESHOLD = 31;
const MOST = 0.02;
/** A row of one image is looked for in the other among so many, in both directions. */
const FARTHEST = 40;

/** The mean of each square of pixels, as a grey image. */
function small(large) {
  const [width, height] = [Math.floor(large.width / SMALLER), Math.floor(large.height / SMALLER)];
  const image = new PNG({ width, height });
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      let sum = 0;
      for (let dy = 0; dy < SMALLER; dy += 1) {
        for (let dx = 0; dx < SMALLER; dx += 1) {
          const at = ((y * SMALLER + dy) * large.width + x * SMALLER + dx) * 4;
          sum += 0.299 * large.data[at] + 0.587 * large.data[at + 1] + 0.114 * large.data[at + 2];
        }
      }
      image.data.fill(Math.round(sum / SMALLER ** 2), (y * width + x) * 4, (y * width + x) * 4 + 3);
      image.data[(y * width + x) * 4 + 3] = 255;
    }
  }
  return image;
}

/**
 * The fewest pixels that differ where rows may be left out of either image, each of whose pixels then differs. A line more or
 * less of text moves what is below it, and is no other look; one timeline is.
 */
function differing(golden, image) {
  const { width } = golden;
  const of = (row, other) => {
    let count = 0;
    for (let x = 0; x < width; x += 1) {
      if (Math.abs(golden.data[(row * width + x) * 4] - image.data[(other * width + x) * 4]) > THRESHOLD) count += 1;
    }
    return count;
  };
  const left = (rows) => rows * width;
  let above = Array.from({ length: image.height + 1 }, (_, other) => (other > FARTHEST ? Infinity : left(other)));
  for (let row = 1; row <= golden.height; row += 1) {
    const line = new Array(image.height + 1).fill(Infinity);
    for (let other = Math.max(0, row - FARTHEST); other <= Math.min(image.height, row + FARTHEST); other += 1) {
      line[other] = above[other] + width;
      if (other > 0) line[other] = Math.min(line[other], line[other - 1] + width, above[other - 1] + of(row - 1, other - 1));
    }
    above = line;
  }
  return above[image.height];
}

/** All of the page: in a window as long as it is. */
async function shot(page) {
  let height = 0;
  // Findings have their heights once they were in sight.
  for (let attempt = 0; attempt < 20; attempt += 1) {
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const long = await page.evaluate(() => document.documentElement.scrollHeight);
    if (long === height) break;
    height = long;
    await page.setViewport({ ...page.viewport(), height });
  }
  const bytes = Buffer.from(await page.screenshot({ captureBeyondViewport: false }));
  return { bytes, image: PNG.sync.read(bytes) };
}

/** Whether the page looks as it did; `renew`: from now on it shall look so. */
export async function compared(page, name, { goldens, results, renew }) {
  const { bytes: whole, image: large } = await shot(page);
  await writeFile(`${results}/${name}.png`, whole);
  const image = small(large);
  const file = `${goldens}/${name}.png`;
  if (renew) {
    const bytes = PNG.sync.write(image, { colorType: 0, deflateLevel: 9 });
    await writeFile(file, bytes);
    return { met: true, found: `renewed, ${bytes.length} bytes` };
  }
  let golden;
  try {
    golden = PNG.sync.read(await readFile(file));
  } catch (error) {
    return { met: false, found: `${error.message}; --renew-goldens writes it` };
  }
  const { width } = golden;
  if (image.width !== width || Math.abs(golden.height - image.height) > Math.max(4, 0.04 * golden.height)) {
    return { met: false, found: `${image.width}×${image.height} in place of ${width}×${golden.height}` };
  }
  const share = differing(golden, image) / (width * golden.height);
  return { met: share <= MOST, found: `${(100 * share).toFixed(2)} % differ (at most ${100 * MOST} %)` };
}
