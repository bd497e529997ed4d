// A long list of which only what is seen is in the document: ten thousand rows scroll like ten.

import { h } from "../dom";

export class Rows<T> {
  readonly element: HTMLElement;
  private rows: T[] = [];
  private readonly filler = h("div.rows-filler");
  private readonly shown = new Map<string, { made: HTMLElement; from: string }>();
  private isAsked = false;
  focused = 0;

  constructor(private readonly height: number, private readonly keyOf: (row: T) => string, private readonly versionOf: (row: T) => string,
              private readonly make: (row: T) => HTMLElement, label: string) {
    this.element = h("div.rows", { role: "list", "aria-label": label, tabindex: "0" }, this.filler);
    this.element.addEventListener("scroll", () => this.ask(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.step(event));
    new ResizeObserver(() => this.ask()).observe(this.element);
  }

  set(rows: T[]): void {
    this.rows = rows;
    this.filler.style.height = `${rows.length * this.height}px`;
    this.ask();
  }

  /** The rows that can be seen now. */
  visible(): T[] {
    const first = Math.floor(this.element.scrollTop / this.height);
    return this.rows.slice(first, first + Math.ceil(this.element.clientHeight / this.height) + 1);
  }

  private ask(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  private draw(): void {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.height) - 6);
    const last = Math.min(this.rows.length, first + Math.ceil(this.element.clientHeight / this.height) + 12);
    const kept = new Set<string>();
    for (let at = first; at < last; at++) {
      const row = this.rows[at];
      const key = this.keyOf(row);
      const version = this.versionOf(row);
      kept.add(key);
      let entry = this.shown.get(key);
      if (!entry || entry.from !== version) {
        const made = this.make(row);
        made.setAttribute("role", "listitem");
        const hadFocus = entry?.made.contains(document.activeElement);
        entry?.made.remove();
        entry = { made, from: version };
        this.shown.set(key, entry);
        this.filler.append(made);
        if (hadFocus) (made.querySelector("a") as HTMLElement | null)?.focus();
      }
      entry.made.style.transform = `translateY(${at * this.height}px)`;
      entry.made.setAttribute("aria-posinset", String(at + 1));
      entry.made.setAttribute("aria-setsize", String(this.rows.length));
    }
    for (const [key, entry] of this.shown) {
      if (kept.has(key)) continue;
      entry.made.remove();
      this.shown.delete(key);
    }
  }

  private step(event: KeyboardEvent): void {
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (move === undefined || (event.target as HTMLElement).matches("input, select, textarea")) return;
    event.preventDefault();
    this.focused = Math.max(0, Math.min(this.rows.length - 1, this.focused + move));
    const top = this.focused * this.height;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + this.height > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + this.height - this.element.clientHeight;
    this.draw();
    if (!this.rows[this.focused]) return;
    (this.shown.get(this.keyOf(this.rows[this.focused]))?.made.querySelector("a") as HTMLElement | null)?.focus();
  }
}
