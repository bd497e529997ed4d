// What a sandbox uses, as plots; and what it is made of.

import { get, patch } from "../api";
import { h, Life, replace } from "../dom";
import { bytes, moment } from "../format";
import { addressOf, type Sandbox, type State } from "../state";
import { bar, plot } from "../ui/figures";
import { field, textInput } from "../ui/form";
import { attempt } from "../ui/notice";

const KEPT = 120;
const FACTS: [string, (one: Sandbox) => string][] = [
  ["Id", (one) => one.id], ["Status", (one) => `${one.status}${one.reason ? `: ${one.reason}` : ""}`], ["Image", (one) => one.image ?? "host"], ["Network", (one) => one.network ?? "none"],
  ["Made", (one) => moment(one.createdAt)], ["Started", (one) => (one.startedAt ? moment(one.startedAt) : "–")], ["Sleeps after", (one) => (one.sleepAfter ? `${one.sleepAfter} s without work` : "never")],
  ["Not enforced here", (one) => (one.unenforced ?? []).join(", ") || "nothing"],
];

function limitsForm(state: State, sandbox: Sandbox): HTMLElement {
  const memory = textInput(sandbox.limits.memory ? bytes(sandbox.limits.memory).replace(" ", "").replace("B", "") : "", { placeholder: "no limit" });
  const cpu = textInput(sandbox.limits.cpu ? String(sandbox.limits.cpu) : "", { type: "number", min: "0", step: "0.1", placeholder: "no limit" });
  const pids = textInput(sandbox.limits.pids ? String(sandbox.limits.pids) : "", { type: "number", min: "0" });
  const save = async () => {
    const limits: Record<string, unknown> = { memory: memory.value || 0, cpu: Number(cpu.value || 0), pids: Number(pids.value || 0) };
    state.put(await patch(addressOf(sandbox), { limits }));
  };
  return h("form.columns", { onsubmit: (event: Event) => { event.preventDefault(); void attempt(save, "The limits hold now"); } }, field("Memory", memory), field("CPUs", cpu), field("Processes", pids), h("button", { type: "submit" }, "Change limits"));
}

export function showStats(place: HTMLElement, state: State, life: Life, sandbox: Sandbox): void {
  const cpu: number[] = [];
  const memory: number[] = [];
  const received: number[] = [];
  const sent: number[] = [];
  let last: any;
  let lastTime = 0;
  const plots = h("div.plots");
  const facts = h("dl.facts", {}, FACTS.map(([name, of]) => [h("dt", {}, name), h("dd", {}, of(sandbox))]));
  const push = (values: number[], value: number) => { values.push(value); values.splice(0, values.length - KEPT); };
  const read = async () => {
    const stats = await get(`${addressOf(sandbox)}/stats`, life.signal).catch(() => null);
    if (!stats) return;
    const now = performance.now();
    if (last) {
      const seconds = (now - lastTime) / 1000;
      push(cpu, Math.max(0, (stats.cpuMicroseconds - last.cpuMicroseconds) / 1e6 / seconds));
      push(received, Math.max(0, (stats.receivedBytes - last.receivedBytes) / seconds));
      push(sent, Math.max(0, (stats.sentBytes - last.sentBytes) / seconds));
    }
    push(memory, stats.memoryBytes ?? 0);
    last = stats;
    lastTime = now;
    replace(plots, plot("CPU", [{ name: "", values: cpu }], (value) => `${(value * 100).toFixed(0)} %`, sandbox.limits.cpu || 1),
      plot("Memory", [{ name: "", values: memory }], bytes, sandbox.limits.memory || 0),
      plot("Network", [{ name: "in", values: received }, { name: "out", values: sent }], (value) => `${bytes(value)}/s`),
      h("div.gauges", {}, h("div", {}, h("b", {}, "Disk "), bar(stats.diskBytes ?? 0, sandbox.limits.disk ?? 0, bytes)), h("div", {}, h("b", {}, "Processes "), bar(stats.pids ?? 0, sandbox.limits.pids ?? 0, String)),
        stats.outOfMemoryKills > 0 && h("p.problem", {}, `${stats.outOfMemoryKills} times something was ended for lack of memory.`)));
  };
  replace(place, h("div.columns-wide", {}, plots, h("section", {}, h("h3", {}, "What it is"), facts, state.mayWrite && [h("h3", {}, "Limits"), limitsForm(state, sandbox)])));
  life.every(1000, () => void read());
  void read();
}
