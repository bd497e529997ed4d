// Terminals of a sandbox in tabs. A terminal lives in the sandbox: leaving the page leaves it running, and whoever comes
// back sees what it showed.

import { segment, socket } from "../api";
import { button, h, Life, replace } from "../dom";
import { addressOf, type Sandbox, type State } from "../state";
import { Screen } from "../ui/screen";
import { notice } from "../ui/notice";

const encoder = new TextEncoder();

class Tab {
  readonly element = h("div.screen");
  readonly told = h("div.screen-told", { role: "status" });
  readonly panel = h("div.screen-panel", {}, this.element, this.told);
  private screen?: Screen;
  private socket?: WebSocket;
  private pause = 300;
  private timer = 0;
  private isOver = false;
  title = "";

  constructor(private readonly sandbox: Sandbox, readonly session: string, private readonly changed: () => void) {}

  show(): void {
    if (!this.screen) this.open();
    else this.fit();
    this.screen?.terminal.focus();
  }

  private open(): void {
    const screen = (this.screen = new Screen(this.element));
    screen.terminal.onData((data) => this.send(encoder.encode(data)));
    screen.terminal.onBinary((data) => this.send(Uint8Array.from(data, (char) => char.charCodeAt(0) & 255)));
    screen.terminal.onTitleChange((title) => {
      this.title = title.slice(0, 60);
      this.changed();
    });
    screen.fit();
    this.connect();
  }

  private send(data: Uint8Array): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(data);
    else if (this.isOver) this.again();
  }

  private connect(): void {
    const { cols, rows } = this.screen!.terminal;
    const made = (this.socket = socket(`${addressOf(this.sandbox)}/terminals?sessionId=${segment(this.session)}&cols=${cols}&rows=${rows}`));
    let isFirst = true;
    made.onmessage = ({ data }) => {
      if (typeof data === "string") return this.control(JSON.parse(data));
      if (isFirst) this.screen!.terminal.reset(); // what it showed so far comes again
      isFirst = false;
      this.screen!.terminal.write(new Uint8Array(data));
    };
    made.onclose = (event) => {
      if (this.isOver || this.socket !== made) return;
      this.told.textContent = event.reason || "Not connected; trying again …";
      if (event.code === 1008 || event.code === 4401) return;
      this.timer = window.setTimeout(() => this.connect(), this.pause);
      this.pause = Math.min(this.pause * 2, 8000);
    };
  }

  private control(message: any): void {
    if (message.type === "ready") {
      this.pause = 300;
      this.told.textContent = "";
      this.fit();
    } else if (message.type === "exit") {
      this.isOver = true;
      this.told.textContent = `The shell ended (${message.code ?? message.signal ?? "?"}). Press a key for a new one.`;
    } else if (message.type === "error") notice(message.message, "bad");
    else if (message.type === "skipped") this.told.textContent = "Some output was skipped: it came faster than it could be shown.";
  }

  private again(): void {
    this.isOver = false;
    this.screen!.terminal.reset();
    this.connect();
  }

  fit(): void {
    const { screen } = this;
    if (!screen) return;
    screen.fit();
    const { cols, rows } = screen.terminal;
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: "resize", cols, rows }));
  }

  end(): void {
    this.isOver = true;
    clearTimeout(this.timer);
    this.socket?.close(1000);
    this.screen?.end();
  }
}

/** Which terminals are open in which sandbox, for as long as the page is. */
const open = new Map<string, string[]>();

export function showTerminal(place: HTMLElement, _state: State, life: Life, sandbox: Sandbox): void {
  const names = open.get(sandbox.id) ?? ["page"];
  const bar = h("div.tabs", { role: "group", "aria-label": "Terminals" });
  const panels = h("div.fill.screens");
  let tabs: Tab[] = [];
  let current: Tab;
  const save = () => open.set(sandbox.id, tabs.map((tab) => tab.session));
  const draw = () => replace(bar,
    tabs.map((tab, at) => h("span.tab", {}, h("button", { type: "button", "aria-pressed": tab === current ? "true" : "false", onclick: () => choose(tab) }, tab.title || `Terminal ${at + 1}`),
      tabs.length > 1 && button("cross", `Close terminal ${at + 1}`, () => close(tab)))),
    button("plus", "Another terminal", () => choose(add(`page-${Date.now().toString(36)}`))));
  const add = (session: string) => {
    const tab = new Tab(sandbox, session, draw);
    tabs.push(tab);
    panels.append(tab.panel);
    save();
    return tab;
  };
  const choose = (tab: Tab) => {
    current = tab;
    tabs.forEach((one) => one.panel.toggleAttribute("hidden", one !== tab));
    draw();
    requestAnimationFrame(() => tab.show());
  };
  const close = (tab: Tab) => {
    tab.end();
    tab.panel.remove();
    tabs = tabs.filter((one) => one !== tab);
    save();
    choose(current === tab ? tabs[0] : current);
  };
  replace(place, bar, panels);
  names.forEach(add);
  const observer = new ResizeObserver(() => current.fit());
  observer.observe(panels);
  life.onEnd(() => {
    observer.disconnect();
    tabs.forEach((tab) => tab.end());
  });
  choose(tabs[0]);
}
