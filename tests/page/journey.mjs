// From nothing to time travel, as a person would: once by mouse, once by keyboard alone.

import { ask, claim, execute, go, leave, picture, run, test, until, visit } from "./browser.mjs";

const PLOT = "import matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt\nplt.plot([1, 4, 2, 8])\nplt.show()";

async function terminalShows(page, text) {
  await until(`${text} in the terminal`, () => page.evaluate((wanted) => [...document.querySelectorAll(".xterm-rows > div")].some((row) => row.textContent.replace(/\u00a0/g, " ").includes(wanted)), text));
}

async function create(page, name) {
  await page.getByRole("button", { name: "New", exact: true }).or(page.getByRole("button", { name: "New sandbox" })).first().click();
  await page.getByLabel("Name").fill(name);
  await page.getByRole("button", { name: "Create" }).click();
  await page.waitForSelector(".screen .xterm");
}

test("by mouse: create, terminal, plot, preview, snapshot, diff, fork, roll back", async () => {
  const page = await visit();
  await create(page, "mouse");
  await page.waitForFunction(() => document.querySelector(".screen-told")?.textContent === "");
  await terminalShows(page, "root:");
  await page.click(".screen");
  await page.keyboard.type("echo first > kept; expr 6 '*' 7\n");
  await terminalShows(page, "42");
  await picture(page, "terminal");

  await page.click("text=Time");
  await page.click("text=Snapshot");
  await page.getByLabel("Name").fill("before");
  await page.getByRole("button", { name: "Snapshot", exact: true }).last().click();
  await page.waitForSelector(".dot");

  await page.click("text=Code");
  await page.fill(".editor textarea", "print(6 * 7)\n[n * n for n in range(4)]");
  await page.getByRole("button", { name: "Run this cell (Shift+Enter)" }).click();
  await page.waitForSelector("pre.result");
  claim((await page.textContent(".output")).includes("42") && (await page.textContent(".result")).includes("[0, 1, 4, 9]"), "output and value of the cell");

  await execute("mouse", "echo more >> kept; echo x > new; echo '<title>it serves</title>served' > index.html");
  await page.click("text=Processes");
  await page.click("button:has-text('Start')");
  await page.getByLabel("Command").fill("exec python3 -u -m http.server 8080");
  await page.getByRole("button", { name: "Start", exact: true }).last().click();
  await page.waitForSelector(".process .badge.good");
  await page.click("text=Ports");
  await page.click(".port:has-text('8080') button:has-text('Expose')");
  await page.click(".port:has-text('8080') button:has-text('Preview')");
  const frame = page.frameLocator(".preview iframe");
  await frame.getByText("served").waitFor();
  await picture(page, "preview");

  await page.click("text=Time");
  await page.click(".dot");
  await page.waitForSelector(".diff .changed");
  const diff = await page.textContent(".diff");
  claim(diff.includes("+ workspace/new") && diff.includes("~ workspace/kept"), `the diff: ${diff}`);
  await picture(page, "time");
  await page.locator(".moment").getByRole("button", { name: "Fork" }).click();
  await until("a fork", async () => (await ask("GET", "/sandboxes")).sandboxes.some((one) => one.labels.forkedFrom));
  await page.locator(".moment").getByRole("button", { name: "Roll back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await page.waitForSelector(".notice.good:has-text('as it was then')");
  claim((await execute("mouse", "cat kept; ls")).stdout === "first\nkept\n", "the disk is what it was");
  await leave(page);
});

test("by keyboard alone: the same", async () => {
  const page = await visit();
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  const reach = async (name) => { // Tab until the control of that name has the focus
    await until(`the focus on ${name}`, async () => {
      const focused = await page.evaluate(() => { const one = document.activeElement; return one ? `${one.getAttribute("aria-label") ?? ""}|${one.textContent?.trim() ?? ""}|${one.id && document.querySelector(`label[for="${one.id}"]`)?.textContent || ""}` : ""; });
      if (focused.split("|").some((word) => word === name)) return true;
      await page.keyboard.press("Tab");
      return false;
    });
  };
  await page.waitForSelector("h1");
  await reach("New");
  await press("Enter");
  await reach("Name");
  await page.keyboard.type("keys");
  await press("Enter");
  await terminalShows(page, "root:");
  await page.keyboard.type("echo first > kept; expr 6 '*' 7\n");
  await terminalShows(page, "42");
  await go(page, "#/sandboxes/keys/time");
  await reach("Snapshot");
  await press("Enter");
  await page.waitForSelector("dialog");
  await reach("Name");
  await press("Enter");
  await page.waitForSelector(".dot");
  await execute("keys", "echo more >> kept");
  await page.focus(".dot");
  await press("Enter");
  await page.waitForSelector(".diff .changed");
  await reach("Roll back");
  await press("Enter");
  await page.waitForSelector("dialog");
  await reach("Roll back");
  await press("Enter");
  await page.waitForSelector(".notice.good:has-text('as it was then')");
  claim((await execute("keys", "cat kept")).stdout === "first\n", "the disk is what it was");
  await leave(page);
});

test("files: made, written, shown, uploaded, downloaded, deleted", async () => {
  await ask("POST", "/sandboxes", { name: "files" });
  await execute("files", "printf 'a,b\\n1,\"two, three\"\\n' > table.csv");
  const page = await visit({ path: "#/sandboxes/files/files" });
  await page.click("button:has-text('File')");
  await page.getByLabel("Name").fill("hello.py");
  await page.getByRole("button", { name: "Make" }).click();
  await page.fill(".editor textarea", "print('hello')\n");
  await page.keyboard.press("Control+s");
  await page.waitForSelector(".notice.good:has-text('Saved')");
  claim((await execute("files", "python3 hello.py")).stdout === "hello\n", "what was written");
  await page.click(".file:has-text('table.csv') .link");
  await page.waitForSelector("td:has-text('two, three')");
  await page.setInputFiles("input[type=file]", { name: "up.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 1, 2, 255]) });
  await page.waitForSelector(".file:has-text('up.bin')");
  claim((await execute("files", "od -An -tx1 up.bin")).stdout.trim() === "00 01 02 ff", "what was uploaded");
  await page.click(".file:has-text('up.bin') .link");
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".file-view").getByRole("button", { name: "Download" }).click()]);
  claim(download.suggestedFilename() === "up.bin", "its name");
  await page.getByRole("button", { name: "Delete up.bin" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.waitForSelector(".file:has-text('up.bin')", { state: "detached" });
  await leave(page);
});

test("a plot comes as a picture", async () => {
  await ask("POST", "/sandboxes", { name: "plots" });
  const can = await execute("plots", "python3 -c 'import matplotlib.pyplot'");
  const page = await visit({ path: "#/sandboxes/plots/code" });
  await page.fill(".editor textarea", PLOT);
  await page.keyboard.press("Control+Enter");
  if (can.exitCode === 0) {
    await page.waitForSelector("img.result");
    claim(await page.evaluate(() => document.querySelector("img.result").naturalWidth > 100), "the picture is there");
  } else await page.waitForSelector(".output .stderr"); // the image has no matplotlib that works: the error is shown
  await picture(page, "code");
  await leave(page);
});

test("a terminal is where it was after the page was left and loaded again", async () => {
  await ask("POST", "/sandboxes", { name: "again" });
  const page = await visit({ path: "#/sandboxes/again/terminal" });
  await terminalShows(page, "root:");
  await page.click(".screen");
  await page.keyboard.type("kept=here-$((40+2)); echo $kept\n");
  await terminalShows(page, "here-42");
  await go(page, "#/");
  await page.waitForSelector(".rows");
  await go(page, "#/sandboxes/again/terminal");
  await terminalShows(page, "here-42");
  await page.reload();
  await page.waitForSelector(".screen .xterm");
  await terminalShows(page, "here-42");
  await leave(page);
});

await run();
