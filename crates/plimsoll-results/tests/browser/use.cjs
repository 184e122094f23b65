// Uses the made report of 14 files the way a person would, and takes pictures of it.
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { withBrowser, withPage } = require("./chromium.cjs");

const HOSTILE = "<script>document.title='owned'</script>\"'&amp; 画像 🎨.jpg";
const WIDTH = 1280;

// Thirteen files have scores; one of them is not a number, one is without end.
async function plotsAreDrawn(page) {
  const charts = page.locator("svg.chart");
  assert.equal(await charts.count(), 4);
  const counts = [13, 13, 12, 12];
  for (const [number, wanted] of counts.entries()) {
    const chart = charts.nth(number), box = await chart.boundingBox();
    assert.ok(box.width > 250 && box.x >= 0 && box.x + box.width <= WIDTH, JSON.stringify(box));
    const points = await chart.locator(".point").evaluateAll((points) => points.map((point) => {
      const { x, y, width, height } = point.getBoundingClientRect();
      return { x: x + width / 2, y: y + height / 2, width, row: Number(point.dataset.row) };
    }));
    assert.equal(points.length, wanted);
    for (const { x, y, width } of points) {
      assert.ok(width > 3 && x > box.x && x < box.x + box.width, `a point of ${width} at ${x}`);
      assert.ok(y > box.y && y < box.y + box.height, `a point at height ${y}`);
    }
    // Of the first three files, JPEG of one reference, the larger is the better: right and up, on every plot.
    const of = (row) => points.find((point) => point.row === row);
    assert.ok(of(1).x > of(0).x && of(1).y < of(0).y, "more bits are right and up");
    // Three series of the landscape, two of the portrait; a NaN takes a point, not a line.
    assert.equal(await chart.locator(".line").count(), 5);
  }
  assert.equal(await page.locator(".legend .series").count(), 3);
}

async function hostileNamesAreText(page) {
  assert.equal(await page.title(), "14 files against 2 references");
  assert.equal(await page.locator("td.file b", { hasText: HOSTILE }).count(), 1);
  assert.equal(await page.locator("script").count(), 1);
  assert.equal(await page.locator("img[src=x]").count(), 0);
  assert.match(await page.locator("tr.failed .error").innerText(), /ends after 512 of 6000 bytes <here>/);
}

async function picturesAreLoaded(page) {
  const loaded = (images) => images.map((image) => [image.naturalWidth, image.naturalHeight]);
  const maps = await page.locator("img.map").evaluateAll(loaded);
  const pictures = await page.locator("img.picture").evaluateAll(loaded);
  assert.deepEqual([maps.length, pictures.length], [13, 13]);
  assert.deepEqual([maps[0], pictures[0]], [[768, 512], [640, 427]]);
  assert.ok(maps.concat(pictures).every(([width, height]) => width > 0 && height > 0));
  assert.ok(await page.locator("img.map").first().isVisible());
  assert.equal(await page.locator("img.reference").count(), 2);
}

const order = (page) => page.locator("tbody tr").evaluateAll((lines) => lines.map((line) => Number(line.dataset.row)));

async function sortingReorders(page) {
  const given = [...Array(14).keys()];
  assert.deepEqual(await order(page), given);
  const heading = page.locator("th", { hasText: "Size" }), bytes = page.locator("tbody td[data-name=Size]");
  const sizes = () => bytes.evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.by)));
  await heading.locator("button").click();
  const rising = await sizes();
  assert.deepEqual(rising, [...rising].sort((a, b) => a - b));
  assert.notDeepEqual(await order(page), given);
  assert.equal(await heading.getAttribute("aria-sort"), "ascending");
  await heading.locator("button").click();
  assert.deepEqual(await sizes(), rising.reverse());
  // What has no score is last either way, and without end is more than any number.
  const psnr = page.locator("th", { hasText: "PSNR" }).locator("button");
  await psnr.click();
  assert.deepEqual((await order(page)).slice(-2), [8, 13]);
  await psnr.click();
  const falling = await order(page);
  assert.deepEqual([falling[0], falling.at(-1)], [8, 13]);
}

async function pointsTellTheirFile(page) {
  const point = page.locator("svg.chart").first().locator(".point[data-row='4']");
  await point.scrollIntoViewIfNeeded();
  await point.hover();
  const tip = page.locator("#tip");
  assert.ok(await tip.isVisible());
  assert.match(await tip.innerText(), /harbour-0\.4\.avif[^]*bpp 0\.400[^]*SSIMULACRA2/);
  assert.equal(await page.locator(".point.near").count(), 4);
  await page.locator("h1").hover();
  assert.ok(await tip.isHidden());
}

async function seriesAndReferencesCanBeChosen(page) {
  const shown = () => page.locator("svg.chart").first().locator(".point:visible").count();
  const jpeg = page.locator(".series", { hasText: /^JPEG$/ });
  await jpeg.click();
  assert.equal(await shown(), 8);
  await jpeg.click();
  await page.locator(".choose select").selectOption("1");
  assert.equal(await shown(), 4);
  await page.locator(".choose select").selectOption("");
  assert.equal(await shown(), 13);
}

async function keysReachThePoints(page) {
  await page.locator("svg.chart").first().locator(".point[tabindex='0']").focus();
  await page.keyboard.press("ArrowRight");
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  assert.match(await focused(), /SSIMULACRA2 .* at 0\.900 bits per pixel/);
  assert.ok(await page.locator("#tip").isVisible());
  await page.keyboard.press("Enter");
  assert.ok(await page.locator("#viewer").isVisible());
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#viewer").isHidden());
}

async function viewerEnlarges(page, folder) {
  await page.locator("#row-3 img.map").click();
  const viewer = page.locator("#viewer"), layer = (name) => viewer.locator(`[data-layer=${name}]`);
  assert.ok(await viewer.isVisible());
  const visible = async () => {
    const names = ["reference", "variant", "heat"];
    const seen = await Promise.all(names.map((name) => layer(name).isVisible()));
    return names.filter((_, at) => seen[at]).join(" ");
  };
  assert.equal(await visible(), "heat");
  const heat = await layer("heat").evaluate((image) => image.decode().then(() => [image.naturalWidth, image.clientWidth]));
  assert.ok(heat[0] === 768 && heat[1] > 500, `${heat}`);
  assert.ok(await viewer.locator(".bar").isVisible());
  await page.screenshot({ path: path.join(folder, "viewer-heat.png") });
  await page.keyboard.press("1");
  assert.equal(await visible(), "reference variant");
  const clip = () => layer("variant").evaluate((image) => getComputedStyle(image).clipPath);
  const before = await clip();
  await viewer.locator("input").fill("20");
  assert.notEqual(await clip(), before);
  await page.screenshot({ path: path.join(folder, "viewer-split.png") });
  await viewer.locator(".stage").click({ position: { x: 5, y: 5 } });
  await viewer.evaluate(() => document.activeElement.blur());
  await viewer.press(" ");
  assert.equal(await visible(), "reference");
  await viewer.press(" ");
  assert.equal(await visible(), "variant");
  const name = await viewer.locator("h2").innerText();
  await viewer.locator("[data-step='1']").click();
  assert.notEqual(await viewer.locator("h2").innerText(), name);
  await page.keyboard.press("Escape");
  assert.ok(await viewer.isHidden());
}

async function main([folder, file]) {
  await withBrowser((browser) => use(browser, file, folder));
}

async function use(browser, file, folder) {
  const look = (colorScheme, width) => ({ viewport: { width, height: 900 }, colorScheme });
  const shoot = async (page, name) => {
    await page.evaluate(() => Promise.all([...document.images].filter((image) => image.src).map((image) => image.decode())));
    await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
  };
  await withPage(browser, file, look("light", WIDTH), async (page) => {
    await shoot(page, "light");
    await plotsAreDrawn(page);
    await hostileNamesAreText(page);
    await picturesAreLoaded(page);
    await pointsTellTheirFile(page);
    await seriesAndReferencesCanBeChosen(page);
    await keysReachThePoints(page);
    await viewerEnlarges(page, folder);
    await sortingReorders(page);
    await page.pdf({ path: path.join(folder, "print.pdf"), format: "A4" });
  });
  await withPage(browser, file, look("dark", WIDTH), async (page) => {
    await shoot(page, "dark");
    await page.locator("svg.chart").nth(1).locator(".point[data-row='4']").hover();
    await page.screenshot({ path: path.join(folder, "hover.png") });
  });
  await withPage(browser, file, look("light", 420), async (page) => {
    await shoot(page, "narrow");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 420);
    await page.locator("#row-3 img.map").click();
    await page.screenshot({ path: path.join(folder, "viewer-narrow.png") });
  });
  await withPage(browser, file, { ...look("light", WIDTH), javaScriptEnabled: false }, async (page) => {
    assert.equal(await page.locator("svg.chart .point").count(), 50);
    assert.ok(await page.locator("svg.chart").first().isVisible());
  });
}

main(process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
