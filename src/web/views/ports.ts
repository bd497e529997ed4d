// Ports of a sandbox: what listens, what is exposed, and how it looks. A preview is of another origin than this page
// and in a frame with no rights over it.

import { get, post, remove } from "../api";
import { button, h, icon, Life, replace } from "../dom";
import { addressOf, type Sandbox, type State } from "../state";
import { copy, copyAs, empty, field, snippets, textInput } from "../ui/form";
import { attempt, dialog } from "../ui/notice";

interface Exposed {
  port: number;
  name: string | null;
  url?: string;
  wake: boolean;
}

export function showPorts(place: HTMLElement, state: State, life: Life, sandbox: Sandbox): void {
  const at = `${addressOf(sandbox)}/ports`;
  const list = h("div.port-list", { role: "list", "aria-label": "Ports" });
  const frame = h("div.preview");
  let shown = 0;
  let last = "";

  const preview = (port: Exposed) => {
    shown = port.port;
    const view = h<HTMLIFrameElement>("iframe", { src: port.url!, title: `Port ${port.port}`, sandbox: "allow-scripts allow-forms allow-same-origin allow-modals allow-popups allow-downloads", referrerpolicy: "no-referrer" });
    replace(frame, h("div.bar", {}, h("code", {}, port.url!), h("span.grow"), button("refresh", "Load again", () => { view.src = port.url!; }),
      button("copy", "Copy the address", () => void copy(port.url!)), h("a.button", { href: port.url!, target: "_blank", rel: "noopener noreferrer", title: "Open in a tab of its own" }, icon("out"))), view);
  };
  const expose = async (number: number, wake = true) => {
    await post(at, { port: number, wake });
    await read();
  };
  const row = (port: Exposed, listens: boolean) => h("div.port", { role: "listitem" }, h("b", {}, String(port.port)), h("span.badge" + (listens ? ".good" : ""), {}, listens ? "listens" : "nothing listens"),
    port.url ? [button("play", `Preview port ${port.port}`, () => preview(port), "Preview"), button("copy", `Copy the address of port ${port.port}`, () => void copy(port.url!)),
      state.me.scope !== "read" && button("trash", `Close port ${port.port}`, () => void attempt(() => remove(`${at}/${port.port}`), `Port ${port.port} is closed`).then(read), "", "danger")]
      : state.me.scope !== "read" && button("out", `Expose port ${port.port}`, () => void attempt(() => expose(port.port)).then(read), "Expose"));
  const ask = () => {
    const number = textInput("", { type: "number", min: "1", max: "65535", required: true, autofocus: true, placeholder: "8080" });
    const wakes = h<HTMLInputElement>("input", { type: "checkbox", checked: true });
    const body = () => ({ port: Number(number.value), wake: wakes.checked });
    dialog("Expose a port", h("div", {}, field("Port", number), h("label.check", {}, wakes, "Visitors wake the sandbox when it sleeps"),
      copyAs(snippets("POST", () => at, body, () => `burrow port expose ${sandbox.name ?? sandbox.id} ${number.value}${wakes.checked ? " --wake" : ""}`))),
    [{ word: "Cancel" }, { word: "Expose", kind: "primary", act: () => expose(Number(number.value), wakes.checked) }]);
  };
  async function read(): Promise<void> {
    try {
      const told = await get<{ ports: Exposed[]; listening: { port: number }[] | number[] }>(at, life.signal);
      const listening = (told.listening ?? []).map((one: any) => (typeof one === "number" ? one : one.port)) as number[];
      const now = JSON.stringify(told);
      if (now === last) return;
      last = now;
      const hidden = listening.filter((number) => !told.ports.some((port) => port.port === number)).map((port) => ({ port, name: null, wake: false }));
      const rows = [...told.ports, ...hidden].sort((a, b) => a.port - b.port);
      replace(list, rows.length ? rows.map((port) => row(port, listening.includes(port.port)))
        : empty("Nothing listens", "Start a server inside, for example:", `burrow exec -d ${sandbox.name ?? sandbox.id} 'python3 -m http.server 8080'`));
      if (shown && !told.ports.some((port) => port.port === shown)) replace(frame);
    } catch (error) {
      if (!life.signal.aborted) replace(list, h("p.problem", {}, error instanceof Error ? error.message : String(error)));
    }
  }
  replace(place, h("div.bar", {}, h("span.grow"), state.me.scope !== "read" && button("plus", "Expose a port", ask, "Expose")), h("div.split", {}, list, frame));
  life.every(3000, () => void read());
  void read();
}
