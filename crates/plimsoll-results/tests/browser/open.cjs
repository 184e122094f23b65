// Opens pages at two widths: each complains about nothing and is never wider than the window.
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { withBrowser, withPage } = require("./chromium.cjs");

async function main([folder, ...files]) {
  await withBrowser(async (browser) => { for (const file of files) await open(browser, file, folder); });
}

async function open(browser, file, folder) {
  for (const width of [1280, 420]) {
    await withPage(browser, file, { viewport: { width, height: 900 } }, async (page) => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${path.basename(file)} is ${wide} wide in a window of ${width}`);
      for (const heading of await page.locator("th button").all()) await heading.click();
      await page.screenshot({ path: path.join(folder, `${path.basename(file, ".html")}-${width}.png`), fullPage: true });
    });
  }
}

main(process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
