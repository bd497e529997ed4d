// Code as cells: text, tables and plots as they come. What code says is never markup of this page: rich results are
// shown in a frame without any rights.

import { get, post, remove, segment, stream } from "../api";
import { button, h, Life, replace } from "../dom";
import { addressOf, type Sandbox, type State } from "../state";
import { Editor } from "../ui/editor";
import { choice } from "../ui/form";
import { attempt, sentence } from "../ui/notice";

const ENDINGS: Record<string, string> = { python: "cell.py", javascript: "cell.js", typescript: "cell.ts" };
const PICTURES: [string, string][] = [["png", "image/png"], ["jpeg", "image/jpeg"]];
const OUTPUT_MAX = 200_000;

interface Kept {
  language: string;
  context: string;
  cells: { code: string; element?: Cell }[];
}

/** A result in the best of its forms. */
export function showResult(result: any): HTMLElement {
  for (const [name, type] of PICTURES) if (typeof result[name] === "string") return h("img.result", { src: `data:${type};base64,${result[name]}`, alt: result.text ?? "A picture" });
  if (typeof result.svg === "string") return h("img.result", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(result.svg)}`, alt: result.text ?? "A picture" });
  if (typeof result.html === "string") return richFrame(result.html);
  const text = result.text ?? result.markdown ?? result.latex;
  return h("pre.result", {}, text === undefined ? JSON.stringify(result.json ?? null, null, 2) : String(text));
}

/** Markup of strangers in a frame without scripts, origin or forms. What the frame would refuse all the same is taken out
 * before, so that it need not. */
function richFrame(html: string): HTMLElement {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  parsed.querySelectorAll("script, style, link, meta, base, object, embed, iframe, form").forEach((element) => element.remove());
  for (const element of parsed.querySelectorAll("*"))
    for (const name of element.getAttributeNames()) if (name === "style" || name.startsWith("on")) element.removeAttribute(name);
  const lines = parsed.querySelector("table")?.querySelectorAll("tr").length ?? 8;
  const frame = h<HTMLIFrameElement>("iframe.result.rich", { sandbox: "", title: "A result of the code", srcdoc: `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="${document.querySelector<HTMLLinkElement>("link[rel=stylesheet]")!.href}"><body class="rich-body">${parsed.body.innerHTML}` });
  frame.style.height = `${Math.min(480, 24 + lines * 28)}px`;
  return frame;
}

class Cell {
  readonly element: HTMLElement;
  readonly editor: Editor;
  private readonly output = h("div.output", { "aria-live": "polite" });
  private readonly number = h("span.cell-number", {}, "[ ]");
  private text?: HTMLElement;
  private running?: AbortController;

  constructor(code: string, private readonly notebook: Notebook) {
    this.editor = new Editor(ENDINGS[notebook.kept.language] ?? "cell.py", code, "Code");
    this.editor.onKey((event) => {
      if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey)) return;
      event.preventDefault();
      void this.run(event.shiftKey);
    });
    this.editor.onChange(() => notebook.remember());
    this.element = h("section.cell", {}, h("div.cell-side", {}, this.number, button("play", "Run this cell (Shift+Enter)", () => void this.run(false))),
      h("div.cell-main", {}, this.editor.element, this.output), h("div.cell-side", {}, button("stop", "Interrupt", () => this.stop()), button("trash", "Remove this cell", () => notebook.remove(this), "", "danger")));
  }

  stop(): void {
    this.running?.abort();
  }

  private say(text: string, kind: string): void {
    if (!this.text?.isConnected) this.output.append((this.text = h("pre.stream", {})));
    if (this.text.textContent!.length > OUTPUT_MAX) return;
    this.text.append(kind ? h(`span.${kind}`, {}, text) : document.createTextNode(text));
  }

  async run(moveOn: boolean): Promise<void> {
    this.stop();
    this.running = new AbortController();
    this.notebook.life.onEnd(() => this.stop());
    replace(this.output);
    this.text = undefined;
    this.number.textContent = "[*]";
    if (moveOn) this.notebook.after(this).editor.focus();
    let told = "[ ]";
    try {
      const contextId = await this.notebook.context();
      await stream(`${addressOf(this.notebook.sandbox)}/code/run`, { method: "POST", body: { code: this.editor.value, contextId }, signal: this.running.signal }, ({ data }) => {
        if (data.type === "stdout") this.say(data.text, "");
        else if (data.type === "stderr") this.say(data.text, "stderr");
        else if (data.type === "result") { this.output.append(showResult(data)); this.text = undefined; }
        else if (data.type === "error") this.output.append(h("pre.stream.stderr", {}, (data.traceback ?? []).join("\n") || `${data.ename}: ${data.evalue}`));
        else if (data.type === "execution_complete") told = `[${data.execution_count ?? " "}]`;
      });
    } catch (error) {
      if (this.running.signal.aborted) this.say("Interrupted.", "quiet");
      else this.output.append(h("p.problem", {}, sentence(error)));
      this.notebook.forgetContext(error);
    }
    this.number.textContent = told;
  }
}

const notebooks = new Map<string, Kept>();

class Notebook {
  readonly kept: Kept;
  private readonly list = h("div.cells");
  private cells: Cell[] = [];

  constructor(readonly state: State, readonly life: Life, readonly sandbox: Sandbox) {
    this.kept = notebooks.get(sandbox.id) ?? { language: "python", context: "", cells: [{ code: "" }] };
    notebooks.set(sandbox.id, this.kept);
  }

  show(place: HTMLElement): void {
    const language = choice([["python", "Python"], ["javascript", "JavaScript"], ["typescript", "TypeScript"]], this.kept.language);
    language.setAttribute("aria-label", "Language");
    language.addEventListener("change", () => {
      this.kept.language = language.value;
      this.kept.context = "";
      this.draw();
    });
    const add = () => this.after(this.cells[this.cells.length - 1]).editor.focus();
    replace(place, h("div.bar", {}, language, h("small.quiet.wide", {}, "Shift+Enter runs a cell; variables stay until the context is restarted"), h("span.grow"),
      button("refresh", "Restart: forget all variables", () => void this.restart(), "Restart"), button("plus", "Another cell", add, "Cell")), this.list);
    this.draw();
    this.cells[0].editor.focus();
  }

  private draw(): void {
    this.cells = this.kept.cells.map((kept) => new Cell(kept.code, this));
    replace(this.list, this.cells.map((cell) => cell.element));
  }

  remember(): void {
    this.kept.cells = this.cells.map((cell) => ({ code: cell.editor.value }));
  }

  after(cell: Cell): Cell {
    const at = this.cells.indexOf(cell);
    if (at + 1 < this.cells.length && cell !== this.cells[this.cells.length - 1]) return this.cells[at + 1];
    const made = new Cell("", this);
    this.cells.push(made);
    this.list.append(made.element);
    this.remember();
    return made;
  }

  remove(cell: Cell): void {
    cell.stop();
    if (this.cells.length === 1) cell.editor.value = "";
    else {
      this.cells = this.cells.filter((one) => one !== cell);
      cell.element.remove();
    }
    this.remember();
  }

  async context(): Promise<string> {
    const at = `${addressOf(this.sandbox)}/code/contexts`;
    this.kept.context ||= (await post(at, { language: this.kept.language })).contextId;
    return this.kept.context;
  }

  /** A context that is gone, as after the sandbox was stopped, is made again by the next run. */
  forgetContext(error: unknown): void {
    if ((error as { status?: number }).status === 404) this.kept.context = "";
  }

  private async restart(): Promise<void> {
    this.cells.forEach((cell) => cell.stop());
    const { context } = this.kept;
    this.kept.context = "";
    if (context) await attempt(() => remove(`${addressOf(this.sandbox)}/code/contexts/${segment(context)}`), "All variables are forgotten");
  }
}

export function showCode(place: HTMLElement, state: State, life: Life, sandbox: Sandbox): void {
  new Notebook(state, life, sandbox).show(place);
  void get(`${addressOf(sandbox)}/code/contexts`).catch(() => {});
}
