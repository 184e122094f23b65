// Opens the report of a real run: plots with a point for every file, heat maps that are loaded and seen, no complaint.
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { withBrowser, withPage } = require("../../plimsoll-results/tests/browser/chromium.cjs");

async function look(page, files, picture) {
  const charts = page.locator("svg.chart");
  assert.equal(await charts.count(), 3, "ssim2, butteraugli and its 3-norm");
  for (const chart of await charts.all()) {
    assert.equal(await chart.locator(".point").count(), files);
    const box = await chart.boundingBox();
    assert.ok(box.width > 250 && box.height > 150, JSON.stringify(box));
  }
  const map = page.locator("img.map").first();
  await map.scrollIntoViewIfNeeded();
  assert.ok(await map.isVisible());
  assert.ok(await map.evaluate((image) => image.decode().then(() => image.naturalWidth)) > 100);
  assert.equal(await page.locator("img.map").count(), files);
  await map.click();
  await page.locator("[data-zoom]").click();
  const layer = page.locator("[data-layer=variant]");
  const shown = await layer.evaluate((image) => image.decode().then(() => [image.naturalWidth, image.getBoundingClientRect().width * devicePixelRatio]));
  assert.ok(shown[0] > 90 && Math.abs(shown[0] - shown[1]) < 1, "a pixel of the image is one of the screen: " + shown);
  await page.keyboard.press("Escape");
  await page.screenshot({ path: picture, fullPage: true });
}

async function main([file, files]) {
  const options = { viewport: { width: 1280, height: 900 } };
  const picture = path.join(path.dirname(file), "score.png");
  await withBrowser((browser) => withPage(browser, file, options, (page) => look(page, Number(files), picture)));
}

main(process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
