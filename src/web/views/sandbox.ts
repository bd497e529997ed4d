// One sandbox: its head, and a tab for each thing there is to see in it.

import { ApiError, get, segment } from "../api";
import { button, h, icon, Life, replace } from "../dom";
import { nameOf, type Sandbox, type State } from "../state";
import { statusBadge } from "../ui/badge";
import { empty } from "../ui/form";
import { sandboxActions } from "./sandboxes";
import { showCode } from "./code";
import { showEvents } from "./events";
import { showFiles } from "./files";
import { showPorts } from "./ports";
import { showProcesses } from "./processes";
import { showStats } from "./stats";
import { showTerminal } from "./terminal";
import { showTime } from "./time";

type Show = (place: HTMLElement, state: State, life: Life, sandbox: Sandbox) => void;

const TABS: { name: string; word: string; icon: string; show: Show }[] = [
  { name: "terminal", word: "Terminal", icon: "terminal", show: showTerminal },
  { name: "files", word: "Files", icon: "folder", show: showFiles },
  { name: "code", word: "Code", icon: "code", show: showCode },
  { name: "processes", word: "Processes", icon: "gear", show: showProcesses },
  { name: "ports", word: "Ports", icon: "port", show: showPorts },
  { name: "time", word: "Time", icon: "tree", show: showTime },
  { name: "stats", word: "Stats", icon: "chart", show: showStats },
  { name: "events", word: "Events", icon: "bell", show: showEvents },
];

async function findSandbox(state: State, word: string): Promise<Sandbox | null> {
  const known = state.find(word);
  if (known) return known;
  try {
    const found = await get<Sandbox>(`/sandboxes/${segment(word)}`);
    state.put(found);
    return found;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

function tabBar(address: string, current: string): HTMLElement {
  const bar = h("nav.tabs", { "aria-label": "Parts of this sandbox" }, TABS.map((tab) => h("a", { href: `${address}/${tab.name}`, title: tab.word, "aria-label": tab.word, "aria-current": tab.name === current ? "page" : null }, icon(tab.icon), h("span", {}, tab.word))));
  return bar;
}

export async function showSandbox(place: HTMLElement, state: State, life: Life, word: string, tabName: string): Promise<void> {
  const found = await findSandbox(state, word);
  if (!found) return replace(place, empty("No such sandbox", `There is no sandbox "${word}", or it is not yours. It may have been destroyed.`, "", h("a.button", { href: "#/" }, "All sandboxes")));
  const { id } = found;
  const tab = TABS.find((one) => one.name === tabName) ?? TABS[0];
  const head = h("header.bar");
  const panel = h("div.panel.fill");
  let shownHead = "";
  const drawHead = () => {
    const sandbox = state.sandboxes.get(id);
    if (!sandbox) return replace(place, empty("It is gone", `${nameOf(found)} was destroyed.`, "", h("a.button", { href: "#/" }, "All sandboxes")));
    const now = `${sandbox.status} ${sandbox.name} ${sandbox.tier}`;
    if (now === shownHead) return;
    shownHead = now;
    replace(head, h("a.button.flat", { href: "#/", "aria-label": "All sandboxes", title: "All sandboxes" }, icon("back")), h("h1", {}, nameOf(sandbox)), statusBadge(sandbox),
      h("small.quiet.wide", {}, sandbox.image ?? "host"), h("span.grow"), sandboxActions(state, sandbox).map((one) => button(one.icon, one.word, one.act, one.word, one.kind ?? "")));
  };
  replace(place, head, tabBar(`#/sandboxes/${segment(word)}`, tab.name), panel);
  state.onChange(drawHead, life.signal);
  drawHead();
  tab.show(panel, state, life, found);
}
