// Fields of forms, and "copy as": the same thing as a line for a shell or a program.

import { button, h, replace, type Child } from "../dom";
import { notice } from "./notice";

let fields = 0;

/** A label with its input, and a line that says what it is for. */
export function field(label: string, input: HTMLElement, help = ""): HTMLElement {
  input.id ||= `field-${++fields}`;
  const told = help ? h("small", { id: `${input.id}-help` }, help) : null;
  if (told) input.setAttribute("aria-describedby", told.id);
  return h("div.field", {}, h("label", { for: input.id }, label), input, told);
}

export function textInput(value = "", attributes: Record<string, any> = {}): HTMLInputElement {
  return h<HTMLInputElement>("input", { type: "text", value, autocomplete: "off", spellcheck: "false", ...attributes });
}

export function choice(options: [string, string][], value = ""): HTMLSelectElement {
  const select = h<HTMLSelectElement>("select", {}, options.map(([key, word]) => h("option", { value: key }, word)));
  select.value = value;
  return select;
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notice("Copied", "good");
  } catch {
    notice("The browser does not let this page write to the clipboard", "bad");
  }
}

export interface Snippet {
  name: string;
  text: () => string;
}

const quoted = (text: string) => `'${text.replace(/'/g, "'\\''")}'`;

/** The same request as a shell, Python or our command line would send it. */
export function snippets(method: string, path: () => string, body: () => unknown, cli: () => string): Snippet[] {
  const origin = location.origin;
  const json = () => JSON.stringify(body());
  return [
    { name: "burrow", text: cli },
    { name: "curl", text: () => `curl -X ${method} -H "Authorization: Bearer $BURROW_KEY" ${origin}/burrow/v1${path()}` + (body() === undefined ? "" : ` \\\n  -d ${quoted(json())}`) },
    { name: "Python", text: () => `import json, os, urllib.request as r\nr.urlopen(r.Request("${origin}/burrow/v1${path()}", method="${method}",\n  headers={"Authorization": "Bearer " + os.environ["BURROW_KEY"]}` + (body() === undefined ? "" : `,\n  data=json.dumps(${json().replace(/\btrue\b/g, "True").replace(/\bfalse\b/g, "False").replace(/\bnull\b/g, "None")}).encode()`) + ")).read()" },
  ];
}

/** "copy as …": tabs with the snippets, told anew each time it is opened. */
export function copyAs(list: Snippet[]): HTMLElement {
  const shown = h("pre.snippet", { tabindex: "0" });
  let current = list[0];
  const show = (snippet: Snippet) => {
    current = snippet;
    shown.textContent = snippet.text();
    [...tabs.children].forEach((tab, at) => tab.setAttribute("aria-pressed", String(list[at] === snippet)));
  };
  const tabs = h("div.tabs.small", {}, list.map((snippet) => h("button", { type: "button", onclick: () => show(snippet) }, snippet.name)));
  const details = h("details.copy-as", { ontoggle: () => show(current) }, h("summary", {}, "Copy as …"),
    tabs, shown, button("copy", "Copy", () => void copy(current.text()), "Copy"));
  return details;
}

/** What a place without anything shows: what it is for, and the line that fills it. */
export function empty(title: string, text: string, line = "", action: Child = null): HTMLElement {
  const place = h("div.empty", {}, h("h3", {}, title), h("p", {}, text));
  if (line) place.append(h("pre.snippet", { tabindex: "0" }, line));
  const more = h("div", {});
  replace(more, action);
  place.append(more);
  return place;
}
