// The page: who is in, what is shown, and what holds it together.

import { ApiError, whenSignedOut } from "./api";
import { h, icon, Life, replace } from "./dom";
import { State } from "./state";
import { empty } from "./ui/form";
import { noticePlace, sentence } from "./ui/notice";
import { showDaemon, showKeys, showStored, showUsers } from "./views/admin";
import { showEvents } from "./views/events";
import { showSandbox } from "./views/sandbox";
import { showSandboxes } from "./views/sandboxes";
import { showDoor, signOut } from "./views/signin";

type View = (place: HTMLElement, state: State, life: Life, words: string[]) => void | Promise<void>;

const VIEWS: { path: string; word: string; icon: string; show: View; isAdmins?: boolean }[] = [
  { path: "", word: "Sandboxes", icon: "box", show: (place, state, life, words) => (words[1] ? showSandbox(place, state, life, words[1], words[2] ?? "") : showSandboxes(place, state, life)) },
  { path: "events", word: "Events", icon: "bell", show: (place, state, life) => showEvents(place, state, life) },
  { path: "kept", word: "Kept", icon: "image", show: showStored },
  { path: "keys", word: "Keys", icon: "key", show: showKeys },
  { path: "users", word: "Users", icon: "users", show: showUsers, isAdmins: true },
  { path: "daemon", word: "Daemon", icon: "gear", show: showDaemon, isAdmins: true },
];

const THEMES = ["", "light", "dark"];

class Page {
  private state?: State;
  private life = new Life();
  private readonly main = h("main", { id: "main", tabindex: "-1" });
  private readonly lost = h("div.lost", { role: "alert", hidden: true }, "Not connected to Burrow; trying again …");

  start(place: HTMLElement): void {
    this.useTheme(localStorage.getItem("burrow.theme") ?? "");
    whenSignedOut(() => { if (this.state) this.leave(place); });
    addEventListener("hashchange", () => this.state && this.show());
    void this.enter(place);
  }

  private async enter(place: HTMLElement): Promise<void> {
    const state = new State();
    if (new URLSearchParams(location.hash.replace(/^#\/?\??/, "")).has("first")) return this.door(place);
    try {
      await state.open();
    } catch (error) {
      state.close();
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return this.door(place);
      replace(place, noticePlace(), empty("Burrow does not answer", sentence(error), "", h("button.primary", { type: "button", onclick: () => void this.enter(place) }, "Try again")));
      setTimeout(() => { if (!this.state) void this.enter(place); }, 3000);
      return;
    }
    this.state = state;
    state.onChange(() => this.lost.toggleAttribute("hidden", state.isConnected), new AbortController().signal);
    replace(place, h("a.skip", { href: "#main", onclick: (event: Event) => { event.preventDefault(); this.main.focus(); } }, "To the content"), this.navigation(place), h("div.content", {}, this.lost, this.main), noticePlace());
    this.show();
  }

  private door(place: HTMLElement): void {
    const box = h("div.door-place");
    replace(place, box, noticePlace());
    showDoor(box, () => void this.enter(place));
  }

  private leave(place: HTMLElement): void {
    this.life.end();
    this.state?.close();
    this.state = undefined;
    this.door(place);
  }

  private navigation(place: HTMLElement): HTMLElement {
    const state = this.state!;
    const links = VIEWS.filter((view) => !view.isAdmins || state.isAdmin).map((view) => h("a", { href: `#/${view.path}`, "data-path": view.path }, icon(view.icon), h("span", {}, view.word)));
    return h("nav.side-bar", { "aria-label": "Burrow" }, h("a.mark", { href: "#/" }, h("span", {}, "Burrow")), links, h("span.grow"), h("a", { href: "/burrow/v1/docs", target: "_blank", rel: "noopener" }, icon("book"), h("span", {}, "API")),
      h("button.flat", { type: "button", onclick: () => this.nextTheme() }, icon("moon"), h("span", {}, "Theme")),
      h("button.flat", { type: "button", title: `${state.me.user.name}, ${state.me.scope}`, onclick: () => void signOut().then(() => this.leave(place)) }, icon("out"), h("span", {}, "Sign out")));
  }

  private useTheme(theme: string): void {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }

  private nextTheme(): void {
    const next = THEMES[(THEMES.indexOf(localStorage.getItem("burrow.theme") ?? "") + 1) % THEMES.length];
    localStorage.setItem("burrow.theme", next);
    this.useTheme(next);
  }

  private show(): void {
    this.life.end();
    this.life = new Life();
    const words = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
    const first = words[0] === "sandboxes" ? "" : words[0];
    const view = VIEWS.find((one) => one.path === first && (!one.isAdmins || this.state!.isAdmin)) ?? VIEWS[0];
    document.querySelectorAll(".side-bar a[data-path]").forEach((link) => link.toggleAttribute("aria-current", (link as HTMLElement).dataset.path === view.path));
    document.title = words[1] ? `${words[1]} – Burrow` : `${view.word} – Burrow`;
    const life = this.life;
    Promise.resolve(view.show(this.main, this.state!, life, words)).catch((error) => {
      if (!life.signal.aborted) replace(this.main, empty("This cannot be shown", sentence(error)));
    });
  }
}

new Page().start(document.getElementById("page")!);
