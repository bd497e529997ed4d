// Time travel: the snapshots and forks of a sandbox as a tree. A dot is a disk at one moment; it can be compared, forked
// and gone back to.

import { all, get, post, remove, segment } from "../api";
import { button, h, Life, replace, s } from "../dom";
import { age, bytes, moment as sayMoment } from "../format";
import { addressOf, nameOf, type Sandbox, type State } from "../state";
import { familyOf, spread, type Family, type Fork, type Line, type Moment } from "../ui/family";
import { copyAs, empty, field, snippets, textInput } from "../ui/form";
import { attempt, confirmThen, dialog, notice } from "../ui/notice";

const LANE = 46;
const LEFT = 24;
const RIGHT = 130; // for names
const WIDTH = 1000;

type Dot = Line["moments"][number];

function lineOf(family: Family, line: Line, x: (time: number) => number, isCurrent: boolean): SVGElement[] {
  const y = line.lane * LANE + 28;
  const made: SVGElement[] = [];
  if (line.from) {
    const fromY = line.from.lane * LANE + 28;
    const fromX = x(line.from.time);
    made.push(s("path", { class: "branch", d: `M${fromX},${fromY} C${fromX + 14},${fromY} ${fromX},${y} ${fromX + 18},${y} L${x(line.begin)},${y}` }));
  }
  const last = line.isGone ? Math.max(line.begin, ...line.moments.map((one) => one.time)) : family.end;
  made.push(s("line", { class: `life${line.isGone ? " gone" : ""}${isCurrent ? " current" : ""}`, x1: x(line.begin), y1: y, x2: x(last), y2: y }));
  return made;
}

class Tree {
  private chosen: Dot | null = null;
  private other: Dot | null = null;
  private readonly picture = h("div.tree", {});
  private readonly panel = h("aside.moment", { "aria-live": "polite" });
  private family: Family = { lines: [], begin: 0, end: 1 };
  private forks: Fork[] = [];
  private moments: Moment[] = [];

  constructor(private readonly state: State, private readonly life: Life, private readonly sandbox: Sandbox) {}

  show(place: HTMLElement): void {
    replace(place, h("div.bar", {}, h("small.quiet.wide", {}, "A dot is the disk at one moment. Arrow keys move between dots."), h("span.grow"),
      this.state.mayWrite && button("plus", "Keep the disk as it is now", () => this.snapshot(), "Snapshot", "primary"),
      this.state.mayWrite && button("fork", "A copy of it as it is now", () => void this.fork(null), "Fork")), h("div.time", {}, this.picture, this.panel));
    this.picture.addEventListener("keydown", (event) => this.step(event as KeyboardEvent));
    void this.read();
    this.state.onEvent((event) => { if (/^(snapshot\.|sandbox\.(forked|rolled_back|deleted|created))/.test(event.type)) void this.read(); }, this.life.signal);
  }

  private async read(): Promise<void> {
    try {
      const [moments, told] = await Promise.all([all<Moment>("/snapshots", "snapshots"), get("/events?type=sandbox.forked&limit=1000", this.life.signal)]);
      this.moments = moments;
      this.forks = told.events.map((event: any) => ({ child: event.stream, from: event.data.from, snapshot: event.data.snapshotId ?? null, time: event.time }));
    } catch (error) {
      if (!this.life.signal.aborted) replace(this.panel, h("p.problem", {}, error instanceof Error ? error.message : String(error)));
      return;
    }
    const members = new Map([...this.state.sandboxes.values()].map((one) => [one.id, { id: one.id, name: nameOf(one), createdAt: one.createdAt }]));
    this.family = familyOf(this.sandbox.id, members, this.forks, this.moments, Date.now());
    this.draw();
    if (this.chosen && !this.dots().some((dot) => dot.id === this.chosen!.id)) this.chosen = null;
    this.drawPanel();
  }

  private dots(): Dot[] {
    return this.family.lines.flatMap((line) => line.moments);
  }

  private draw(): void {
    const places = spread(this.family, 0.025);
    const x = (time: number) => LEFT + (places.get(time) ?? 0) * (WIDTH - LEFT - RIGHT);
    const last = (line: Line) => (line.isGone ? Math.max(line.begin, ...line.moments.map((one) => one.time)) : this.family.end);
    const height = this.family.lines.length * LANE + 20;
    const hadFocus = this.picture.contains(document.activeElement);
    const lines = this.family.lines.flatMap((line) => lineOf(this.family, line, x, line.id === this.sandbox.id));
    const names = this.family.lines.map((line) => s("a", { href: line.isGone ? null : `#/sandboxes/${segment(line.id)}/time`, class: line.id === this.sandbox.id ? "current" : "" },
      s("text", { x: x(last(line)) + 14, y: line.lane * LANE + 32, class: line.isGone ? "gone" : "" }, line.isGone ? `${line.name.slice(0, 14)} (gone)` : line.name.slice(0, 18))));
    const heads = this.family.lines.filter((line) => !line.isGone).map((line) => s("rect", { class: "head", x: x(this.family.end) - 5, y: line.lane * LANE + 23, width: 10, height: 10, rx: 3 }));
    const dots = this.family.lines.flatMap((line) => line.moments.map((dot) => this.dot(dot, x(dot.time), line.lane * LANE + 28)));
    replace(this.picture, s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": "Snapshots and forks over time", class: "family" }, ...lines, ...heads, ...names, ...dots));
    if (hadFocus && this.chosen) this.focusOn(this.chosen);
  }

  private dot(dot: Dot, x: number, y: number): SVGElement {
    const label = `Snapshot ${dot.name ?? dot.reason}, ${sayMoment(dot.createdAt)}, ${bytes(dot.size)}`;
    const act = () => this.choose(dot);
    return s("g", { class: `dot ${dot.reason} ${dot.state}${this.chosen?.id === dot.id ? " chosen" : ""}${this.other?.id === dot.id ? " other" : ""}`, tabindex: "0", role: "button", "aria-label": label, "data-id": dot.id,
      onclick: (event: MouseEvent) => (event.shiftKey && this.chosen ? this.compare(dot) : act()), onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } } },
    s("circle", { cx: x, cy: y, r: 14, class: "hit" }), s("circle", { cx: x, cy: y, r: 7 }), dot.name && s("text", { x, y: y - 12, "text-anchor": "middle" }, dot.name.slice(0, 14)), s("title", {}, label));
  }

  private focusOn(dot: Dot): void {
    (this.picture.querySelector(`[data-id="${CSS.escape(dot.id)}"]`) as SVGElement | null)?.focus();
  }

  private step(event: KeyboardEvent): void {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const dots = this.dots().sort((a, b) => a.time - b.time);
    if (!move || !dots.length) return;
    event.preventDefault();
    const focused = (document.activeElement as Element | null)?.getAttribute("data-id");
    const at = dots.findIndex((dot) => dot.id === focused);
    this.focusOn(dots[Math.max(0, Math.min(dots.length - 1, at < 0 ? 0 : at + move))]);
  }

  private choose(dot: Dot): void {
    this.chosen = dot;
    this.other = null;
    this.draw();
    this.drawPanel();
  }

  private compare(dot: Dot): void {
    this.other = dot;
    this.draw();
    this.drawPanel();
  }

  private drawPanel(): void {
    const dot = this.chosen;
    if (!dot) return replace(this.panel, this.dots().length ? h("p.quiet", {}, "Choose a dot to compare it with now, to fork it, or to go back to it.")
      : empty("No moment is kept yet", "A snapshot keeps the disk as it is, in milliseconds and without using space. Then you can go back to it, or make copies.", `burrow snapshot create ${nameOf(this.sandbox)}`));
    const mine = dot.sandboxId === this.sandbox.id;
    const diff = h("div.diff", {}, h("p.quiet", {}, "Comparing …"));
    const others = this.dots().filter((one) => one.id !== dot.id);
    const against: HTMLSelectElement = h<HTMLSelectElement>("select", { "aria-label": "Compare with", onchange: () => this.compareBy(against.value) },
      mine && h("option", { value: "" }, "now"), others.map((one) => h("option", { value: one.id }, one.name ?? `${one.reason} ${age(one.createdAt)} ago`)));
    against.value = this.other?.id ?? (mine ? "" : others[0]?.id ?? "");
    replace(this.panel, h("h3", {}, dot.name ?? `${dot.reason} snapshot`), h("dl.facts", {}, h("dt", {}, "When"), h("dd", {}, sayMoment(dot.createdAt)), h("dt", {}, "Size"), h("dd", {}, bytes(dot.size)), h("dt", {}, "State"), h("dd", {}, dot.state),
      dot.expiresAt && [h("dt", {}, "Until"), h("dd", {}, sayMoment(dot.expiresAt))]),
    this.state.mayWrite && h("div.actions.left", {}, button("fork", "A new sandbox that begins with this disk", () => void this.fork(dot), "Fork", "primary"), mine && button("back", "Make the disk what it was then", () => this.rollBack(dot), "Roll back"),
      button("trash", "Delete this snapshot", () => confirmThen("Delete this snapshot?", "Sandboxes that were made from it stay.", "Delete", () => remove(`/snapshots/${segment(dot.id)}`)), "", "danger")),
    h("label.compare", {}, "Changes until ", against), diff);
    void this.readDiff(dot, against.value, diff);
  }

  private compareBy(id: string): void {
    this.other = this.dots().find((dot) => dot.id === id) ?? null;
    this.draw();
    this.drawPanel();
  }

  private async readDiff(dot: Dot, against: string, place: HTMLElement): Promise<void> {
    if (!against && dot.sandboxId !== this.sandbox.id) return replace(place);
    try {
      const path = against ? `/snapshots/${segment(dot.id)}/diff?against=${segment(against)}` : `${addressOf(this.sandbox)}/diff?from=${segment(dot.id)}`;
      const { changes, truncated } = await get(path, this.life.signal);
      replace(place, changes.length === 0 && h("p.quiet", {}, "Nothing is different."), changes.slice(0, 500).map((change: any) => change.added !== undefined ? h("div.added", {}, `+ ${change.added}`)
        : change.removed !== undefined ? h("div.removed", {}, `− ${change.removed}`) : h("div.changed", {}, `~ ${change.changed}`, h("small", {}, ` ${(change.what ?? []).join(", ")}`))),
      (truncated || changes.length > 500) && h("p.quiet", {}, "There is more."));
    } catch (error) {
      if (!this.life.signal.aborted) replace(place, h("p.problem", {}, error instanceof Error ? error.message : String(error)));
    }
  }

  private snapshot(): void {
    const name = textInput("", { placeholder: "before the upgrade", autofocus: true });
    const body = () => (name.value ? { name: name.value } : {});
    dialog("Keep the disk as it is now", h("div", {}, field("Name", name, "May be left empty"), copyAs(snippets("POST", () => `${addressOf(this.sandbox)}/snapshots`, body, () => `burrow snapshot create ${nameOf(this.sandbox)}${name.value ? ` --name '${name.value}'` : ""}`))),
      [{ word: "Cancel" }, { word: "Snapshot", kind: "primary", act: async () => {
        const kept = await post(`${addressOf(this.sandbox)}/snapshots`, body());
        notice(`Kept; the sandbox stood still for ${(kept.pauseMs ?? 0).toFixed(1)} ms`, "good");
        await this.read();
      } }]);
  }

  private async fork(dot: Dot | null): Promise<void> {
    await attempt(async () => {
      const started = performance.now();
      const forked = await post(dot ? `/snapshots/${segment(dot.id)}/fork` : `${addressOf(this.sandbox)}/fork`, {});
      this.state.put(forked.sandboxes[0]);
      notice(`${nameOf(forked.sandboxes[0])} runs; the copy took ${Math.round(performance.now() - started)} ms`, "good");
      await this.read();
    });
  }

  private rollBack(dot: Dot): void {
    confirmThen(`Back to ${dot.name ?? sayMoment(dot.createdAt)}?`, "The disk becomes what it was then. What it is now is kept as a snapshot for a week; processes are started again.", "Roll back", async () => {
      const told = await post(`${addressOf(this.sandbox)}/rollback`, { snapshot: dot.id });
      this.state.put(told.sandbox);
      notice("It is as it was then", "good", () => void attempt(() => post(`${addressOf(this.sandbox)}/rollback`, { snapshot: told.saved.id }), "Undone"));
      await this.read();
    });
  }
}

export function showTime(place: HTMLElement, state: State, life: Life, sandbox: Sandbox): void {
  new Tree(state, life, sandbox).show(place);
}
