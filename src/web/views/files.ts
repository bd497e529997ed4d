// Files of a sandbox: the folder on the left, the file on the right.

import { ApiError, call, fetchGood, filePath, get, post, remove, ROOT } from "../api";
import { button, h, icon, Life, replace } from "../dom";
import { bytes } from "../format";
import { addressOf, type Sandbox, type State } from "../state";
import { empty, field, textInput } from "../ui/form";
import { attempt, confirmThen, dialog, notice } from "../ui/notice";
import { Editor } from "../ui/editor";

interface Entry {
  name: string;
  absolutePath: string;
  type: string;
  size: number;
  modifiedAt: string;
  mode: string;
}

const TEXT_MAX = 2 * 1024 * 1024;
const IMAGES = /\.(png|jpe?g|gif|webp|svg|ico|avif)$/i;
const TABLES = /\.(csv|tsv)$/i;

const join = (folder: string, name: string) => `${folder === "/" ? "" : folder}/${name}`;
const parent = (path: string) => path.replace(/\/[^/]*$/, "") || "/";

function download(blob: Blob, name: string): void {
  const link = h<HTMLAnchorElement>("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Rows of a CSV text; quotes may hold separators and ends of lines. */
export function readTable(text: string, separator: string, most: number): string[][] {
  const rows: string[][] = [[]];
  let cell = "";
  let isQuoted = false;
  for (let at = 0; at < text.length && rows.length <= most; at++) {
    const char = text[at];
    if (isQuoted && char === '"' && text[at + 1] === '"') cell += text[++at];
    else if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (char === separator || char === "\n")) {
      rows[rows.length - 1].push(cell.replace(/\r$/, ""));
      cell = "";
      if (char === "\n") rows.push([]);
    } else cell += char;
  }
  if (cell) rows[rows.length - 1].push(cell);
  return rows.filter((row) => row.length);
}

class Files {
  private folder: string;
  private readonly list = h("div.file-list", { role: "list", "aria-label": "Files" });
  private readonly view = h("div.file-view");
  private readonly crumbs = h("nav.crumbs", { "aria-label": "Folder" });
  private opened = "";
  private picture = "";

  constructor(private readonly state: State, private readonly life: Life, private readonly sandbox: Sandbox) {
    this.folder = sandbox.folder ?? "/workspace";
    life.onEnd(() => URL.revokeObjectURL(this.picture));
  }

  private address(path: string): string {
    return `${addressOf(this.sandbox)}/files${filePath(path)}`;
  }

  show(place: HTMLElement): void {
    const upload: HTMLInputElement = h<HTMLInputElement>("input.hidden", { type: "file", multiple: true, "aria-label": "Files to upload", onchange: () => this.upload([...upload.files!]) });
    const tools = [
      this.state.me.scope !== "read" && [button("up", "Upload files here", () => upload.click(), "Upload"), upload, button("plus", "New file", () => this.make("file"), "File"), button("folder", "New folder", () => this.make("folder"), "Folder")],
      button("down", "Download this folder as an archive", () => void this.archive()), button("refresh", "Read again", () => void this.read()),
    ];
    const split = h("div.files", {}, h("section.side", {}, this.list), this.view);
    split.addEventListener("dragover", (event) => { event.preventDefault(); split.classList.add("dropping"); });
    split.addEventListener("dragleave", () => split.classList.remove("dropping"));
    split.addEventListener("drop", (event) => {
      event.preventDefault();
      split.classList.remove("dropping");
      this.upload([...(event.dataTransfer?.files ?? [])]);
    });
    replace(place, h("div.bar", {}, this.crumbs, h("span.grow"), tools), split);
    replace(this.view, empty("No file is open", "Choose one on the left, or drop files to upload them."));
    void this.read();
  }

  private async go(folder: string): Promise<void> {
    this.folder = folder;
    await this.read();
  }

  private drawCrumbs(): void {
    const parts = this.folder.split("/").filter(Boolean);
    replace(this.crumbs, h("button.link", { type: "button", onclick: () => void this.go("/") }, "/"),
      parts.map((part, at) => [h("button.link", { type: "button", onclick: () => void this.go("/" + parts.slice(0, at + 1).join("/")) }, part), at < parts.length - 1 && "/"]));
  }

  private async read(): Promise<void> {
    this.drawCrumbs();
    try {
      const { files } = await get<{ files: Entry[] }>(`${this.address(this.folder)}?list=1`, this.life.signal);
      files.sort((a, b) => Number(b.type === "directory") - Number(a.type === "directory") || a.name.localeCompare(b.name));
      replace(this.list, this.folder !== "/" && this.row({ name: "..", absolutePath: parent(this.folder), type: "directory" } as Entry),
        files.map((entry) => this.row(entry)), files.length === 0 && h("p.quiet", {}, "This folder is empty."));
    } catch (error) {
      replace(this.list, h("p.problem", {}, error instanceof Error ? error.message : String(error)));
    }
  }

  private row(entry: Entry): HTMLElement {
    const path = entry.name === ".." ? entry.absolutePath : join(this.folder, entry.name);
    const isFolder = entry.type === "directory";
    const open = () => void (isFolder ? this.go(path) : this.open(path, entry.size));
    return h("div.file", { role: "listitem" }, h("button.link", { type: "button", onclick: open }, icon(isFolder ? "folder" : "file"), h("span", {}, entry.name)),
      h("small", {}, isFolder ? "" : bytes(entry.size)),
      entry.name !== ".." && this.state.me.scope !== "read" && button("trash", `Delete ${entry.name}`, () => this.remove(path, isFolder), "", "danger"));
  }

  private async open(path: string, size: number): Promise<void> {
    await attempt(async () => {
      this.opened = path;
      if (size > TEXT_MAX && !IMAGES.test(path)) return this.showBig(path, size);
      const response = await fetchGood(ROOT + this.address(path), { signal: this.life.signal });
      const blob = await response.blob();
      if (IMAGES.test(path)) return this.showPicture(path, blob);
      const text = await blob.text();
      if (text.includes("\0")) return this.showBig(path, size);
      if (TABLES.test(path)) return this.showTable(path, text);
      this.edit(path, text, response.headers.get("ETag") ?? "");
    });
  }

  private head(path: string, ...tools: (HTMLElement | false)[]): HTMLElement {
    return h("div.bar", {}, h("b", {}, path), h("span.grow"), tools, button("down", "Download", () => void this.download(path)));
  }

  private showBig(path: string, size: number): void {
    replace(this.view, this.head(path), h("p.quiet", {}, `${bytes(size)}; it is not shown here. Download it to look at it.`));
  }

  private showPicture(path: string, blob: Blob): void {
    URL.revokeObjectURL(this.picture);
    // An image element runs nothing, whatever the file says.
    this.picture = URL.createObjectURL(new Blob([blob], { type: path.endsWith(".svg") ? "image/svg+xml" : blob.type }));
    replace(this.view, this.head(path), h("div.picture", {}, h("img", { src: this.picture, alt: path })));
  }

  private showTable(path: string, text: string): void {
    const rows = readTable(text, path.endsWith(".tsv") ? "\t" : ",", 1000);
    const edit = button("file", "Show as text", () => this.edit(path, text, ""), "Text");
    replace(this.view, this.head(path, edit), h("div.table", { tabindex: "0" }, h("table", {}, h("thead", {}, h("tr", {}, rows[0]?.map((cell) => h("th", {}, cell)))),
      h("tbody", {}, rows.slice(1).map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell))))))));
  }

  private edit(path: string, text: string, etag: string): void {
    const editor = new Editor(path, text);
    let kept = etag;
    const save = h<HTMLButtonElement>("button.primary", { type: "button", disabled: true, onclick: () => void store() }, "Save");
    const store = () => attempt(async () => {
      if (kept && (await fetchGood(ROOT + this.address(path), { method: "HEAD" }).catch(() => null))?.headers.get("ETag") !== kept)
        if (!window.confirm("The file has changed meanwhile. Write yours over it?")) return;
      await call(this.address(path), { method: "PUT", body: new Blob([editor.value]) });
      kept = (await fetchGood(ROOT + this.address(path), { method: "HEAD" }).catch(() => null))?.headers.get("ETag") ?? "";
      save.disabled = true;
    }, "Saved");
    editor.onChange(() => { save.disabled = false; });
    editor.onSave(() => { if (!save.disabled) void store(); });
    replace(this.view, this.head(path, this.state.me.scope !== "read" && save), editor.element);
    editor.focus();
  }

  private async download(path: string): Promise<void> {
    await attempt(async () => download(await (await fetchGood(ROOT + this.address(path))).blob(), path.split("/").pop()!));
  }

  private async archive(): Promise<void> {
    await attempt(async () => download(await (await fetchGood(`${ROOT}${addressOf(this.sandbox)}/archive?path=${encodeURIComponent(this.folder)}`)).blob(), `${this.folder.split("/").pop() || "root"}.tar`));
  }

  private upload(files: File[]): void {
    if (!files.length) return;
    const folder = this.folder;
    void attempt(async () => {
      for (const file of files) {
        notice(`Uploading ${file.name} (${bytes(file.size)})`);
        await call(this.address(join(folder, file.name)), { method: "PUT", body: file });
      }
      await this.read();
    }, files.length === 1 ? `${files[0].name} is there` : `${files.length} files are there`);
  }

  private make(kind: "file" | "folder"): void {
    const name = textInput("", { required: true, autofocus: true });
    dialog(`New ${kind}`, field("Name", name), [{ word: "Cancel" }, {
      word: "Make", kind: "primary", act: async () => {
        if (!name.value) throw new ApiError(0, "", "It needs a name");
        const path = join(this.folder, name.value);
        if (kind === "folder") await post(this.address(path), { action: "mkdir" });
        else await call(this.address(path), { method: "PUT", body: new Blob([]) });
        await this.read();
        if (kind === "file") await this.open(path, 0);
      },
    }]);
  }

  private remove(path: string, isFolder: boolean): void {
    confirmThen(`Delete ${path}?`, isFolder ? "The folder and everything in it." : "The file.", "Delete", async () => {
      await remove(`${this.address(path)}${isFolder ? "?recursive=1" : ""}`);
      if (this.opened === path) replace(this.view, empty("No file is open", "It was deleted."));
      await this.read();
    });
  }
}

export function showFiles(place: HTMLElement, state: State, life: Life, sandbox: Sandbox): void {
  new Files(state, life, sandbox).show(place);
}
