// Every view in both themes, on a desk and on a phone: no findings of axe, nothing wider than the screen.

import { readFileSync } from "node:fs";
import { ask, claim, equal, execute, go, leave, picture, run, test, visit } from "./browser.mjs";

const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const VIEWS = ["", "events", "kept", "keys", "users", "daemon", ...["terminal", "files", "code", "processes", "ports", "time", "stats", "events"].map((tab) => `sandboxes/looks/${tab}`)];
const SCREENS = [["desk", { width: 1280, height: 800 }], ["phone", { width: 360, height: 720 }]];

await ask("POST", "/sandboxes", { name: "looks" });
await execute("looks", "echo a > a.txt; mkdir folder");
await ask("POST", "/sandboxes/looks/snapshots", { name: "one" });
await ask("POST", "/sandboxes/looks/fork", { name: "looks-fork" });
await ask("POST", "/sandboxes/looks/processes", { command: "echo started; exec sleep 600" });
await ask("POST", "/sandboxes/looks/ports", { port: 8080 });

async function findings(page) {
  // What a policy lets nobody do by a script element, a debugger may: axe runs in the page's world.
  await page.evaluate(AXE);
  const told = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations"] }));
  return told.violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary?.split("\n")[1] ?? ""}`).slice(0, 3).join("; ")}`);
}

for (const theme of ["light", "dark"])
  for (const [screen, viewport] of SCREENS)
    test(`${theme}, ${screen}: every view`, async () => {
      const page = await visit({ colorScheme: theme, viewport });
      for (const view of VIEWS) {
        await go(page, `#/${view}`);
        await page.waitForSelector("main h1");
        await page.waitForFunction(() => !/Reading …|Comparing …/.test(document.querySelector("main").innerText));
        equal(await findings(page), [], `axe on ${view || "sandboxes"}`);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        claim(width <= viewport.width, `${view} is ${width} wide on a screen of ${viewport.width}`);
        await picture(page, `${theme}-${screen}-${view.replaceAll("/", "-") || "sandboxes"}`);
      }
      await leave(page);
    });

await run();
