// Elements by hand. Text is always text: nothing here, and nothing else in this page, makes markup out of a string.

export type Child = Node | string | number | null | undefined | false | Child[];
type Handler = (event: any) => void;
export type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

function append(parent: Node, child: Child): void {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) child.forEach((one) => append(parent, one));
  else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
}

function setAttribute(element: Element, name: string, value: Attributes[string]): void {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** h("button.primary", { onclick }, "Save"): an element with its classes, attributes and children. */
export function h<T extends HTMLElement = HTMLElement>(what: string, attributes: Attributes = {}, ...children: Child[]): T {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const name in attributes) setAttribute(element, name, attributes[name]);
  children.forEach((child) => append(element, child));
  return element as T;
}

const SVG = "http://www.w3.org/2000/svg";

export function s(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const name in attributes) setAttribute(element, name, attributes[name]);
  children.forEach((child) => append(element, child));
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  children.forEach((child) => append(parent, child));
}

const ICONS: Record<string, string> = {
  box: "M3 7l9-4 9 4v10l-9 4-9-4zM3 7l9 4 9-4M12 11v10",
  terminal: "M4 5h16v14H4zM7 9l3 3-3 3M12 15h5",
  folder: "M3 6h6l2 2h10v11H3z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  gear: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2",
  port: "M8 3v6M16 3v6M5 9h14v3a7 7 0 01-14 0zM12 19v3",
  code: "M8 7l-5 5 5 5M16 7l5 5-5 5M14 4l-4 16",
  chart: "M4 20V4M4 20h16M8 16l4-5 3 3 5-7",
  bell: "M6 16V10a6 6 0 0112 0v6l2 2H4zM10 21h4",
  tree: "M6 4v16M6 8h6a4 4 0 014 4v0M18 14a2 2 0 11-4 0 2 2 0 014 0",
  robot: "M5 8h14v11H5zM12 8V4M9 13h0M15 13h0M9 16h6",
  key: "M14 10a4 4 0 11-4-4 4 4 0 014 4zM13 12l8 8M17 16l2-2",
  users: "M9 11a4 4 0 100-8 4 4 0 000 8zM2 21a7 7 0 0114 0M16 4a4 4 0 010 7M18 14a7 7 0 014 7",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M9 9h0",
  play: "M7 4l13 8-13 8z",
  stop: "M6 6h12v12H6z",
  moon: "M20 14A8 8 0 1110 4a6 6 0 0010 10z",
  fork: "M7 4v7a3 3 0 003 3h4a3 3 0 013 3v3M7 4L4 7M7 4l3 3M17 4v6M17 4l-3 3M17 4l3 3",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 14h10l1-14M10 11v6M14 11v6",
  plus: "M12 5v14M5 12h14",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  back: "M15 5l-7 7 7 7",
  more: "M5 12h0M12 12h0M19 12h0",
  check: "M5 12l5 5 9-10",
  cross: "M6 6l12 12M18 6L6 18",
  down: "M12 4v12M6 11l6 6 6-6M4 20h16",
  up: "M12 20V8M6 13l6-6 6 6M4 4h16",
  search: "M11 4a7 7 0 100 14 7 7 0 000-14zM16 16l5 5",
  out: "M10 4H4v16h6M14 8l4 4-4 4M18 12H9",
  refresh: "M20 5v5h-5M4 19v-5h5M19 10a7 7 0 00-13-2M5 14a7 7 0 0013 2",
  hook: "M12 3v10a4 4 0 11-4-4M12 3l3 3",
  book: "M4 5a3 3 0 013-3h13v17H7a3 3 0 00-3 3z",
};

export function icon(name: string): SVGElement {
  return s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: ICONS[name] ?? "" }));
}

/** A button with an icon and a word; without a word the title is what is read out. */
export function button(name: string, title: string, act: Handler, word = "", kind = ""): HTMLButtonElement {
  return h<HTMLButtonElement>(`button${kind ? "." + kind : ""}`, { type: "button", title, "aria-label": word ? null : title, onclick: act },
    name && icon(name), word);
}

/** What happens while a view is shown ends with it: timers, streams, listeners. */
export class Life {
  private readonly ends: (() => void)[] = [];
  private readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  onEnd(end: () => void): void {
    this.ends.push(end);
  }
  every(ms: number, act: () => void): void {
    const timer = setInterval(() => document.hidden || act(), ms);
    this.onEnd(() => clearInterval(timer));
  }
  listen(target: EventTarget, type: string, act: Handler): void {
    target.addEventListener(type, act, { signal: this.signal });
  }
  end(): void {
    this.controller.abort();
    this.ends.splice(0).forEach((end) => end());
  }
}
