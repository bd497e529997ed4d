// Background processes of a sandbox, with their logs as they are written.

import { get, post, remove, segment, stream } from "../api";
import { button, h, Life, replace } from "../dom";
import { age } from "../format";
import { addressOf, type Sandbox, type State } from "../state";
import { copyAs, empty, field, snippets, textInput } from "../ui/form";
import { attempt, dialog } from "../ui/notice";

interface Process {
  id: string;
  pid: number;
  command: string;
  status: string;
  startTime: string;
  exitCode?: number;
}

const SHOWN_MAX = 400_000;

export function showProcesses(place: HTMLElement, state: State, life: Life, sandbox: Sandbox): void {
  const at = `${addressOf(sandbox)}/processes`;
  const list = h("div.process-list", { role: "list", "aria-label": "Processes" });
  const log = h("pre.log", { tabindex: "0", "aria-label": "Log" });
  const title = h("b", {});
  let shown = "";
  let following = new AbortController();
  life.onEnd(() => following.abort());

  const say = (text: string, kind = "") => {
    const wasAtEnd = log.scrollTop + log.clientHeight > log.scrollHeight - 30;
    log.append(kind ? h(`span.${kind}`, {}, text) : document.createTextNode(text));
    while (log.textContent!.length > SHOWN_MAX && log.firstChild) log.firstChild.remove();
    if (wasAtEnd) log.scrollTop = log.scrollHeight;
  };
  const follow = (process: Process) => {
    following.abort();
    following = new AbortController();
    shown = process.id;
    title.textContent = process.command;
    replace(log);
    stream(`${at}/${segment(process.id)}/logs/stream`, { signal: following.signal }, ({ data }) => {
      if (data.type === "stdout") say(data.data);
      else if (data.type === "stderr") say(data.data, "stderr");
      else if (data.type === "exit") say(`\n${data.data ?? `It ended with ${data.exitCode}.`}\n`, "quiet");
    }).then(() => void read(), () => {});
  };
  const row = (process: Process) => h(`div.process${process.id === shown ? ".current" : ""}`, { role: "listitem" },
    h("button.link", { type: "button", onclick: () => { follow(process); void read(); } }, h("code", {}, process.command)),
    h("span.badge" + (process.status === "running" ? ".good" : process.exitCode ? ".bad" : ""), {}, process.status === "running" ? "running" : `${process.status} ${process.exitCode ?? ""}`),
    h("small", {}, `pid ${process.pid}, ${age(process.startTime)}`),
    process.status === "running" && state.me.scope !== "read" && button("stop", `Kill ${process.id}`, () => void attempt(() => remove(`${at}/${segment(process.id)}`)).then(read), "", "danger"));
  const start = () => {
    const command = textInput("", { autofocus: true, required: true, placeholder: "npm run dev" });
    const folder = textInput("", { placeholder: sandbox.folder ?? "/workspace" });
    const body = () => ({ command: command.value, ...(folder.value ? { cwd: folder.value } : {}) });
    dialog("Start a process", h("div", {}, field("Command", command, "A line for the shell; it goes on in the background"), field("Folder", folder),
      copyAs(snippets("POST", () => at, body, () => `burrow exec -d ${sandbox.name ?? sandbox.id} '${command.value}'`))),
    [{ word: "Cancel" }, { word: "Start", kind: "primary", act: async () => {
      const made = await post(at, body());
      await read();
      follow({ id: made.processId, pid: made.pid, command: command.value, status: "running", startTime: made.timestamp });
    } }]);
  };
  async function read(): Promise<void> {
    if (sandbox.status !== "running") return replace(list, empty("It does not run", "Wake or start the sandbox to see its processes."));
    try {
      const { processes } = await get<{ processes: Process[] }>(at, life.signal);
      processes.sort((a, b) => (a.startTime < b.startTime ? 1 : -1));
      replace(list, processes.length ? processes.map(row) : empty("Nothing runs in the background", "Start a server or a job here, or from a shell:", `burrow exec -d ${sandbox.name ?? sandbox.id} 'npm run dev'`));
      if (!shown && processes.length) follow(processes[0]);
    } catch (error) {
      if (!life.signal.aborted) replace(list, h("p.problem", {}, error instanceof Error ? error.message : String(error)));
    }
  }
  replace(place, h("div.bar", {}, title, h("span.grow"), state.me.scope !== "read" && button("plus", "Start a process", start, "Start"), button("refresh", "Read again", () => void read())),
    h("div.split", {}, list, log));
  life.every(3000, () => void read());
  void read();
}
