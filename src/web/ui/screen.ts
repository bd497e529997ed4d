// xterm.js under a policy that lets no style element in: its style sheets are made by hand instead.

import { Terminal } from "../vendor/xterm";

/** The document as xterm.js sees it: its style elements are adopted style sheets. */
function documentWithSheets(sheets: CSSStyleSheet[]): Document {
  const makeStyle = () => {
    const sheet = new CSSStyleSheet();
    const element = document.createElement("x-style");
    let text = "";
    sheets.push(sheet);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    Object.defineProperty(element, "textContent", { get: () => text, set: (next: string) => sheet.replaceSync((text = next)) });
    Object.defineProperty(element, "sheet", { get: () => sheet });
    return element;
  };
  return new Proxy(document, {
    get(target, name) {
      if (name === "createElement") return (tag: string, options?: ElementCreationOptions) => (tag === "style" ? makeStyle() : target.createElement(tag, options));
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

function theme(): Record<string, string> {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const colors: Record<string, string> = { background: value("screen"), foreground: value("screen-text"), cursor: value("accent"), selectionBackground: value("selection") };
  for (const name of COLORS) if (value(`ansi-${name}`)) colors[name] = value(`ansi-${name}`);
  return colors;
}

export class Screen {
  readonly terminal: Terminal;
  private readonly sheets: CSSStyleSheet[] = [];

  constructor(private readonly place: HTMLElement) {
    this.terminal = new Terminal({ documentOverride: documentWithSheets(this.sheets), fontFamily: "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
      fontSize: 13, scrollback: 5000, cursorBlink: false, theme: theme(), allowProposedApi: false, screenReaderMode: false, macOptionIsMeta: true });
    this.terminal.open(place);
    this.terminal.attachCustomKeyEventHandler((event) => this.keys(event));
  }

  /** Copy and paste as terminals have them; everything else is the program's. */
  private keys(event: KeyboardEvent): boolean {
    if (event.type !== "keydown" || !event.ctrlKey || !event.shiftKey) return true;
    if (event.code === "KeyC") void navigator.clipboard.writeText(this.terminal.getSelection());
    else if (event.code === "KeyV") void navigator.clipboard.readText().then((text) => this.terminal.paste(text)).catch(() => {});
    else return true;
    event.preventDefault();
    return false;
  }

  /** As many columns and rows as fit the place. True when that changed. */
  fit(): boolean {
    const cell = (this.terminal as any)._core?._renderService?.dimensions?.css?.cell;
    if (!cell?.width || !this.place.clientWidth) return false;
    const columns = Math.max(20, Math.floor((this.place.clientWidth - 24) / cell.width));
    const rows = Math.max(4, Math.floor((this.place.clientHeight - 12) / cell.height));
    if (columns === this.terminal.cols && rows === this.terminal.rows) return false;
    this.terminal.resize(columns, rows);
    return true;
  }

  setTheme(): void {
    this.terminal.options.theme = theme();
  }

  end(): void {
    this.terminal.dispose();
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !this.sheets.includes(sheet));
  }
}
