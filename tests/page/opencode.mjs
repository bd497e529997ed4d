// OpenCode's own web client, reached through AgentPod's proxy: node opencode.mjs ADDRESS "" "" SANDBOX EMAIL PASSWORD

import { PATIENCE, address, browser, run, test, words } from "./browser.mjs";

const [sandbox, email, password] = words;

test("a browser that goes to the proxy ends in OpenCode's web client, which works", async () => {
  const context = await browser.newContext();
  const signedIn = await context.request.post(`${address}/api/auth/sign-in/email`, { data: { email, password } });
  if (!signedIn.ok()) throw new Error(`sign-in: ${signedIn.status()}`);
  const page = await context.newPage();
  const errors = [];
  const answers = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("response", (response) => answers.push([response.status(), response.url()]));
  await page.goto(`${address}/sandbox/${sandbox}/opencode/`, { timeout: PATIENCE });
  const here = new URL(page.url());
  if (!here.hostname.startsWith("4096-")) throw new Error(`it is at ${here}, which is no origin of its own`);
  if ((await page.title()) !== "OpenCode") throw new Error(`its title is ${await page.title()}`);
  // It draws itself, and asks its server.
  await page.waitForFunction(() => document.querySelectorAll("button").length > 0, null, { timeout: PATIENCE });
  const api = answers.filter(([status, url]) => new URL(url).host === here.host && status === 200 && /\/(project|config|path|global|session|provider)/.test(url));
  if (!api.length) throw new Error(`it asked its server nothing: ${JSON.stringify(answers)}`);
  if (errors.length) throw new Error(errors.join("\n"));
  const cookies = (await context.cookies(page.url())).map((cookie) => cookie.name).filter((name) => /session/.test(name));
  if (cookies.length) throw new Error(`it has our cookies: ${cookies}`);
  await context.close();
});

await run();
