// What the page must never do: make markup of what strangers say, load from elsewhere, show one user another's things.

import { address, ask, claim, equal, execute, go, leave, requestsOf, run, test, visit } from "./browser.mjs";

const MARK = "<img src=x onerror=document.title='broken-'+'in'><script>document.title='broken-'+'in'</script>";
const isWhole = (page) => page.evaluate(() => !document.title.includes("broken-in") && !document.querySelector("main img[src=x], main script"));

test("names of files, log lines, titles of terminals and results of code stay text", async () => {
  await ask("POST", "/sandboxes", { name: "hostile", labels: { note: MARK } });
  await execute("hostile", `printf '%s' ${JSON.stringify(MARK)} > plain.txt; touch -- "./a<b onclick=alert(1)>.txt" '"><img src=x>'`);
  const page = await visit({ path: "#/sandboxes/hostile/files" });
  await page.waitForSelector(".file:has-text('a<b onclick')");
  await page.click(".file:has-text('plain.txt') .link");
  await page.waitForSelector(".editor textarea");
  equal(await page.inputValue(".editor textarea"), MARK, "the file's text");
  claim(await isWhole(page), "files");

  await ask("POST", "/sandboxes/hostile/processes", { command: `echo "${MARK.replace(/"/g, "'")}"` });
  await go(page, "#/sandboxes/hostile/processes");
  await page.waitForSelector(".log:has-text('onerror')");
  claim(await isWhole(page), "logs");

  await go(page, "#/sandboxes/hostile/terminal");
  await page.waitForSelector(".screen .xterm");
  await page.click(".screen");
  await page.keyboard.type("printf '\\033]0;<img src=x onerror=document.title=1>\\007'\n");
  await page.waitForSelector(".tab:has-text('<img src=x')");
  claim(await isWhole(page), "terminals");

  await go(page, "#/sandboxes/hostile/code");
  await page.fill(".editor textarea", `class Rich:\n    def _repr_html_(self): return """<b id=rich>rich</b>${MARK}<form action='${address}/burrow/v1/keys'></form>"""\nRich()`);
  await page.keyboard.press("Control+Enter");
  const frame = page.frameLocator("iframe.rich");
  await frame.locator("#rich").waitFor();
  claim((await page.getAttribute("iframe.rich", "sandbox")) === "", "the frame has no rights");
  claim(await isWhole(page), "code");

  await go(page, "#/");
  await page.waitForSelector(".row .name");
  await go(page, "#/events");
  await page.waitForSelector(".event");
  claim(await isWhole(page), "events");
  await leave(page, /inline event handler violates/); // the policy stops handlers of what is only read, and says so
});

test("nothing is loaded from anywhere else, and little of it", async () => {
  const page = await visit();
  await page.waitForSelector("h1");
  for (const view of ["#/events", "#/kept", "#/keys", "#/users", "#/daemon", "#/sandboxes/hostile/stats", "#/sandboxes/hostile/time"]) {
    await go(page, view);
    await page.waitForSelector("main h1, main .tabs");
  }
  const foreign = requestsOf(page).map((one) => one.url()).filter((url) => !url.startsWith(address) && !url.startsWith("blob:") && !url.startsWith("data:") && url !== "about:srcdoc");
  equal(foreign, [], "requests to other origins");
  await leave(page);
});

test("the page weighs less than 250 kB and paints without asking the API", async () => {
  const page = await visit({ as: "" });
  await page.waitForSelector(".door");
  const sizes = await page.evaluate(() => performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).map((one) => [new URL(one.name).pathname, one.transferSize]));
  const files = sizes.filter(([path]) => path === "/" || path.startsWith("/page/"));
  const total = files.reduce((sum, [, size]) => sum + size, 0);
  claim(total > 10_000 && total < 250_000, `${total} bytes: ${JSON.stringify(files)}`);
  console.log(`# the page is ${total} bytes over the wire, in ${files.length} files`);
  await page.context().close();
});

test("its files are told with a strict policy, and kept by name", async () => {
  const index = await fetch(`${address}/`);
  const policy = index.headers.get("content-security-policy");
  for (const rule of ["default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self';", "frame-ancestors 'none'"]) claim(policy.includes(rule), `${rule} in ${policy}`);
  claim(!/unsafe|\*;| \* /.test(policy), policy);
  const text = await index.text();
  claim(!/<script(?![^>]*src=)|<style|\son\w+=|style=/.test(text), "nothing inline");
  const script = /\/page\/app\.[0-9a-f]+\.js/.exec(text)[0];
  const file = await fetch(address + script);
  claim(file.headers.get("cache-control").includes("immutable") && file.headers.get("content-encoding") === "gzip", "kept and packed");
  const again = await fetch(address + script, { headers: { "If-None-Match": file.headers.get("etag") } });
  equal(again.status, 304, "known already");
  const plain = await fetch(address + script, { headers: { "Accept-Encoding": "identity" } });
  equal(plain.headers.get("content-encoding"), null, "not packed");
  equal(await plain.text(), await file.text(), "the same file");
  equal((await fetch(`${address}/page/none.js`)).status, 404, "no such file");
});

test("a second user sees nothing of the first, on any view", async () => {
  await ask("POST", "/sandboxes", { name: "private-of-one", labels: { secret: "marzipan" } });
  await ask("POST", "/sandboxes/private-of-one/snapshots", { name: "marzipan-snap" });
  const user = await ask("POST", "/users", { name: "second" });
  const made = await ask("POST", "/keys", { name: "second", scope: "write", user: user.id });
  const page = await visit({ as: made.secret ?? made.key });
  await page.waitForSelector(".empty, .row");
  for (const view of ["#/", "#/events", "#/kept", "#/keys", "#/users", "#/daemon", "#/sandboxes/private-of-one", "#/sandboxes/private-of-one/time", "#/sandboxes/private-of-one/files"]) {
    await go(page, view);
    await page.waitForTimeout(300); // whatever might come has this long, and then some
    const text = (await page.evaluate(() => document.body.innerText)).replaceAll("No such sandbox", "").replaceAll('"private-of-one"', "");
    claim(!/marzipan|private-of-one/.test(text), `${view}: ${text.slice(0, 400)}`);
  }
  equal(await page.locator(".side-bar a:has-text('Users')").count(), 0, "views of administrators");
  await ask("DELETE", `/keys/${made.id ?? made.keyId}`);
  await page.waitForSelector(".door");
  await page.context().close();
});

test("a wrong key says so, and what was typed stays", async () => {
  const page = await visit({ as: "" });
  await page.fill("input[name=key]", "burrow_wrong");
  await page.click("button[type=submit]");
  await page.waitForSelector(".problem:has-text('not known')");
  equal(await page.inputValue("input[name=key]"), "burrow_wrong", "the key that was typed");
  await page.context().close();
});

test("two tabs agree", async () => {
  const [one, two] = [await visit(), await visit()];
  await ask("POST", "/sandboxes", { name: "agreed" });
  for (const page of [one, two]) await page.waitForSelector(".row .name:has-text('agreed')");
  await one.getByRole("button", { name: "Sleep agreed" }).click();
  for (const page of [one, two]) await page.waitForSelector(".row:has-text('agreed') .badge.cool");
  await one.getByRole("button", { name: "Destroy agreed" }).click();
  await one.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
  for (const page of [one, two]) await page.waitForSelector(".row .name:has-text('agreed')", { state: "detached" });
  await one.click(".notice button:has-text('Undo')");
  for (const page of [one, two]) await page.waitForSelector(".row .name:has-text('agreed')");
  await leave(one);
  await leave(two);
});

await run();
