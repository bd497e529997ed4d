// A text area with line numbers and coloured words beneath it: small, and what one types is a plain text area's.

import { h, replace } from "../dom";

const WORDS: Record<string, string> = {
  py: "and as assert async await break class continue def del elif else except finally for from global if import in is lambda None nonlocal not or pass raise return True False try while with yield",
  js: "async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof let new null of return static super switch this throw true try typeof undefined var void while yield interface type enum implements readonly",
  c: "auto bool break case char const continue default do double else enum extern false float for goto if inline int long NULL register return short signed sizeof static struct switch true typedef union unsigned void volatile while",
  sh: "case do done elif else esac export fi for function if in local return set then until while",
  go: "break case chan const continue default defer else fallthrough for func go goto if import interface map nil package range return select struct switch true false type var",
  rs: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self static struct super trait true type unsafe use where while",
};
const KINDS: Record<string, string> = { py: "py", js: "js", mjs: "js", ts: "js", tsx: "js", jsx: "js", json: "js", c: "c", h: "c", cc: "c", cpp: "c", sh: "sh", bash: "sh", go: "go", rs: "rs" };
const COLOURED_MAX = 200_000;

function rule(kind: string): RegExp {
  const comment = kind === "py" || kind === "sh" ? "#[^\\n]*" : "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?\\*\\/";
  const words = WORDS[kind].split(" ").join("|");
  return new RegExp(`(${comment})|("""[\\s\\S]*?"""|"(?:\\\\.|[^"\\\\\\n])*"|'(?:\\\\.|[^'\\\\\\n])*'|\`(?:\\\\.|[^\`\\\\])*\`)|\\b(${words})\\b|\\b(\\d[\\w.]*)\\b`, "g");
}

/** The text in pieces that have a class, as nodes; everything stays text. */
export function colour(text: string, name: string): Node[] {
  const kind = KINDS[name.split(".").pop() ?? ""];
  if (!kind || text.length > COLOURED_MAX) return [document.createTextNode(text)];
  const nodes: Node[] = [];
  let last = 0;
  for (const match of text.matchAll(rule(kind))) {
    if (match.index! > last) nodes.push(document.createTextNode(text.slice(last, match.index)));
    const which = ["comment", "string", "word", "number"][match.slice(1).findIndex((group) => group !== undefined)];
    nodes.push(h(`span.c-${which}`, {}, match[0]));
    last = match.index! + match[0].length;
  }
  nodes.push(document.createTextNode(text.slice(last)));
  return nodes;
}

export class Editor {
  readonly element: HTMLElement;
  private readonly area: HTMLTextAreaElement;
  private readonly under = h("pre.editor-colours", { "aria-hidden": "true" });
  private readonly numbers = h("pre.editor-numbers", { "aria-hidden": "true" });
  private changed: () => void = () => {};
  private saved: () => void = () => {};

  constructor(private readonly name: string, text: string, label = "") {
    this.area = h<HTMLTextAreaElement>("textarea", { spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": label || `Text of ${name}` });
    this.area.value = text;
    this.element = h("div.editor", {}, this.numbers, h("div.editor-text", {}, this.under, this.area));
    this.area.addEventListener("input", () => { this.draw(); this.changed(); });
    this.area.addEventListener("scroll", () => this.scroll());
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.draw();
  }

  get value(): string {
    return this.area.value;
  }

  set value(text: string) {
    this.area.value = text;
    this.draw();
  }

  onChange(changed: () => void): void {
    this.changed = changed;
  }

  onSave(saved: () => void): void {
    this.saved = saved;
  }

  /** Keys of whoever uses it, before ours. */
  onKey(handler: (event: KeyboardEvent) => void): void {
    this.area.addEventListener("keydown", handler);
  }

  focus(): void {
    this.area.focus();
  }

  private draw(): void {
    const lines = this.area.value.split("\n").length;
    replace(this.under, colour(this.area.value, this.name), "\n");
    this.numbers.textContent = Array.from({ length: lines }, (_, at) => at + 1).join("\n");
    this.scroll();
  }

  private scroll(): void {
    this.under.scrollTop = this.numbers.scrollTop = this.area.scrollTop;
    this.under.scrollLeft = this.area.scrollLeft;
  }

  /** Ctrl-S saves. Tab indents once somebody types; Escape gives it back to moving on. */
  private tabMoves = false;
  private key(event: KeyboardEvent): void {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      this.saved();
    } else if (event.key === "Escape") this.tabMoves = true;
    else if (event.key === "Tab" && !this.tabMoves && !event.shiftKey && !event.ctrlKey) {
      event.preventDefault();
      this.area.setRangeText("    ", this.area.selectionStart, this.area.selectionEnd, "end");
      this.draw();
      this.changed();
    } else if (event.key !== "Tab" && event.key !== "Shift") this.tabMoves = false;
  }
}
