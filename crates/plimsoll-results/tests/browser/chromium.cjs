// Starts the browser and opens a page; whatever the page complains about is kept.
"use strict";
const { pathToFileURL } = require("node:url");
const { chromium } = require("playwright-core");

const QUIET = [
  "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

async function withBrowser(use) {
  const isRoot = process.getuid && process.getuid() === 0;
  const name = process.env.PLIMSOLL_BROWSER;
  const executablePath = name.includes("/") || name.includes("\\") ? name : which(name);
  const browser = await chromium.launch({ executablePath, args: isRoot ? [...QUIET, "--no-sandbox"] : QUIET });
  try {
    await use(browser);
  } finally {
    await browser.close();
  }
}

async function withPage(browser, file, options, use) {
  const context = await browser.newContext(options);
  try {
    const page = await context.newPage();
    const complaints = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => complaints.push(`page: ${error.message}`));
    page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); return dialog.dismiss(); });
    page.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) complaints.push(`request: ${request.url()}`);
    });
    await page.goto(pathToFileURL(file).href);
    await use(page);
    if (complaints.length) throw new Error(complaints.join("\n"));
  } finally {
    await context.close();
  }
}

function which(name) {
  const fs = require("node:fs"), path = require("node:path");
  const found = process.env.PATH.split(path.delimiter).map((folder) => path.join(folder, name)).find(fs.existsSync);
  if (!found) throw new Error(`there is no program '${name}'`);
  return found;
}

module.exports = { withBrowser, withPage };
