// Looks at the daemon's dashboard while programs come, are asked to leave and go, the way a person would, and takes pictures.
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { chromium } = require("playwright-core");

const QUIET = [
  "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const HOSTILE = "<img src=x onerror=document.title='owned'>";

// What the test on the other side of standard input does when it is told a word. It answers with a line.
function told() {
  const lines = [], waiting = [];
  let text = "";
  process.stdin.on("data", (chunk) => {
    text += chunk;
    let at;
    while ((at = text.indexOf("\n")) >= 0) {
      const line = text.slice(0, at);
      text = text.slice(at + 1);
      const next = waiting.shift();
      if (next) next(line); else lines.push(line);
    }
  });
  return async (word) => {
    process.stdout.write(`${word}\n`);
    const answer = lines.length ? lines.shift() : await new Promise((resolve) => waiting.push(resolve));
    assert.equal(answer, "done", `${word}: ${answer}`);
  };
}

async function look(browser, url, folder, name, { width, scheme }, use) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`page: ${error.message}`));
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); return dialog.dismiss(); });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin)) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await page.locator("#live.on").waitFor();
  await use(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `the page is ${wide} wide in a window of ${width}`);
  await page.screenshot({ path: path.join(folder, `dashboard-${name}.png`), fullPage: true });
  await context.close();
  assert.deepEqual(complaints, []);
}

async function main([folder, url, withToken]) {
  const tell = told();
  const isRoot = process.getuid && process.getuid() === 0;
  const args = isRoot ? [...QUIET, "--no-sandbox"] : QUIET;
  const browser = await chromium.launch({ executablePath: process.env.PLIMSOLL_BROWSER, args });
  try {
    await look(browser, url, folder, "empty", { width: 390, scheme: "light" }, async (page) => {
      await page.locator("#queue-nothing").waitFor();
      assert.equal(await page.locator(".device").count(), 1);
    });
    await look(browser, url, folder, "preemption", { width: 1280, scheme: "light" }, async (page) => {
      await tell("background");
      const holder = page.locator("#holders tbody tr", { hasText: HOSTILE });
      await holder.waitFor();
      assert.ok((await holder.textContent()).includes("held"));
      assert.equal(await page.locator("#holders img").count(), 0, "names are text");
      await tell("critical");
      await page.locator("#holders .chip", { hasText: /asked to (leave|step down)/ }).first().waitFor();
      await page.locator("#queue li", { hasText: "urgent" }).waitFor();
      await page.locator("#events li[data-what=recalled]").first().waitFor();
      await page.screenshot({ path: path.join(folder, "dashboard-recalled.png"), fullPage: true });
      await tell("leave");
      await page.locator("#holders tbody tr", { hasText: "urgent" }).waitFor();
      await page.locator("#queue-nothing").waitFor();
      assert.notEqual(await page.title(), "owned");
    });
    await look(browser, withToken, folder, "token", { width: 1280, scheme: "dark" }, async (page) => {
      const row = page.locator("#holders tbody tr", { hasText: "urgent" });
      await row.locator("button", { hasText: /^pin$/ }).click();
      await row.locator("button", { hasText: "unpin" }).waitFor();
    });
    await tell("many");
    await look(browser, url, folder, "many", { width: 390, scheme: "dark" }, async (page) => {
      await page.waitForFunction(() => document.querySelectorAll("#holders tbody tr").length >= 200);
      await page.locator("#find").fill("urgent");
      await page.waitForFunction(() => document.querySelectorAll("#holders tbody tr").length === 1);
    });
  } finally {
    await browser.close();
  }
}

main(process.argv.slice(2)).then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
