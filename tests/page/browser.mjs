// Chromium on the page, and TAP: what every file of cases here begins with.
//
//     const page = await visit({ key });          // signed in; another browser context each time
//     test("a sentence", async () => { ... });
//     await run();

import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

export const [, , address, key, pictures, ...words] = process.argv;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];
export const PATIENCE = Number(process.env.BURROW_PAGE_PATIENCE ?? 60_000);

export const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
const tests = [];
export const test = (name, run) => tests.push({ name, run });

/** What a page said that it should not have, by page. */
const complaints = new WeakMap();
/** Where its requests went. */
const requests = new WeakMap();

export function complaintsOf(page) {
  return complaints.get(page);
}

export function requestsOf(page) {
  return requests.get(page);
}

function watch(page) {
  const said = [];
  const asked = [];
  complaints.set(page, said);
  requests.set(page, asked);
  page.on("pageerror", (error) => said.push(`error: ${error.stack}`));
  // Answers that are no success are told by the browser too; the page shows those itself.
  page.on("console", (message) => message.type() === "error" && !message.text().startsWith("Failed to load resource") && said.push(message.text()));
  page.on("request", (request) => asked.push(request));
  page.setDefaultTimeout(PATIENCE);
}

export async function visit({ as = key, path = "#/", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: address });
  const page = await context.newPage();
  watch(page);
  await page.goto(`${address}/`);
  if (as) {
    await page.fill("input[name=key]", as);
    await page.click("button[type=submit]");
    await page.waitForSelector(".side-bar");
    await go(page, path);
  }
  return page;
}

export async function go(page, path) {
  await page.evaluate((hash) => { location.hash = hash; }, path);
}

/** Done with it: nothing was said that should not have been, but for what is `expected`. */
export async function leave(page, expected = /^$/) {
  const said = complaintsOf(page).filter((one) => !expected.test(one));
  await page.context().close();
  if (said.length) throw new Error(`the page complained:\n${said.join("\n")}`);
}

export async function ask(method, path, body, as = key) {
  const answer = await fetch(`${address}/burrow/v1${path}`, { method, headers: { Authorization: `Bearer ${as}`, ...(body ? { "Content-Type": "application/json" } : {}) }, body: body && JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

export async function execute(sandbox, command) {
  return ask("POST", `/sandboxes/${sandbox}/exec`, { command });
}

/** Until a fact holds. */
export async function until(what, look) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > end) throw new Error(`it never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export function equal(seen, wanted, what = "") {
  if (JSON.stringify(seen) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(seen)} is not ${JSON.stringify(wanted)}`);
}

export function claim(holds, what) {
  if (!holds) throw new Error(`not so: ${what}`);
}

/** A picture of the page, for people to look at; kept where BURROW_PICTURES says. */
export async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}/${name}.png` });
}

export async function run() {
  let failed = 0;
  console.log(`1..${tests.length}`);
  for (const [at, { name, run: body }] of tests.entries()) {
    try {
      await body();
      console.log(`ok ${at + 1} - ${name}`);
    } catch (error) {
      failed++;
      console.log(`not ok ${at + 1} - ${name}`);
      console.log(String(error.stack).split("\n").map((line) => `# ${line}`).join("\n"));
    }
  }
  await browser.close();
  process.exit(failed ? 1 : 0);
}
