// The live list of sandboxes, and making one.

import { get, post, remove, segment } from "../api";
import { button, h, icon, Life, replace } from "../dom";
import { age, bytes, count } from "../format";
import { addressOf, isAsleep, nameOf, type Sandbox, type State } from "../state";
import { bar, sparkline } from "../ui/figures";
import { choice, copyAs, empty, field, snippets, textInput } from "../ui/form";
import { attempt, confirmThen, dialog, notice } from "../ui/notice";
import { Rows } from "../ui/rows";
import { statusBadge } from "../ui/badge";

const ROW = 56;
const KEPT = 30;

interface Sample {
  cpu: number[];
  memory: number[];
  lastCpu: number;
  lastTime: number;
}

/** Figures of the rows that are seen; others are not asked for. */
class Samples {
  private readonly kept = new Map<string, Sample>();
  version = 0;

  of(id: string): Sample | undefined {
    return this.kept.get(id);
  }

  async read(sandboxes: Sandbox[]): Promise<void> {
    await Promise.all(sandboxes.filter((one) => one.status === "running").slice(0, 24).map((one) => this.readOne(one.id)));
    this.version++;
  }

  private async readOne(id: string): Promise<void> {
    const stats = await get(`/sandboxes/${segment(id)}/stats`).catch(() => null);
    if (!stats) return;
    const now = performance.now();
    const sample: Sample = this.kept.get(id) ?? { cpu: [], memory: [], lastCpu: stats.cpuMicroseconds, lastTime: now };
    if (now > sample.lastTime) sample.cpu.push(Math.max(0, (stats.cpuMicroseconds - sample.lastCpu) / 1000 / (now - sample.lastTime)));
    sample.memory.push(stats.memoryBytes ?? 0);
    sample.lastCpu = stats.cpuMicroseconds;
    sample.lastTime = now;
    sample.cpu.splice(0, sample.cpu.length - KEPT);
    sample.memory.splice(0, sample.memory.length - KEPT);
    this.kept.set(id, sample);
  }
}

function latest(values: number[] | undefined): number {
  return values?.length ? values[values.length - 1] : 0;
}

/** What can be done with a sandbox in this state; used by the list and by the page of one. */
export function sandboxActions(state: State, sandbox: Sandbox): { icon: string; word: string; act: () => void; kind?: string }[] {
  const at = addressOf(sandbox);
  const name = nameOf(sandbox);
  const order = (verb: string, done: string) => () => void attempt(async () => state.put((await post(`${at}/${verb}`)) ?? (await get(at))), done);
  if (!state.mayWrite) return [];
  const actions = [];
  if (sandbox.status === "stopped") actions.push({ icon: "play", word: "Start", act: order("start", `${name} runs`) });
  if (isAsleep(sandbox)) actions.push({ icon: "play", word: "Wake", act: order("wake", `${name} is awake`) });
  if (sandbox.status === "running") actions.push({ icon: "moon", word: "Sleep", act: order("sleep", `${name} sleeps, with its memory`) });
  actions.push({ icon: "fork", word: "Fork", act: () => void attempt(async () => {
    const forked = await post(`${at}/fork`, {});
    notice(`A copy in ${(forked.pauseMs ?? 0).toFixed(1)} ms: ${nameOf(forked.sandboxes[0])}`, "good");
  }) });
  if (sandbox.status === "running") actions.push({ icon: "stop", word: "Stop", act: order("stop", `${name} is stopped; its disk stays`) });
  actions.push({ icon: "trash", word: "Destroy", kind: "danger", act: () => destroy(sandbox) });
  return actions;
}

/** A snapshot is kept for a day, so that it can be undone. */
function destroy(sandbox: Sandbox): void {
  const at = addressOf(sandbox);
  const name = nameOf(sandbox);
  confirmThen(`Destroy ${name}?`, "Its processes end and its disk is deleted. A snapshot of the disk is kept for a day where that is possible, so that it can be undone.", "Destroy", async () => {
    const kept = await post(`${at}/snapshots`, { ttl: "1d" }).catch(() => null);
    await remove(at);
    const undo = () => void attempt(() => post(`/snapshots/${segment(kept.id)}/fork`, sandbox.name ? { name: sandbox.name } : {}), `${name} is back`);
    notice(`${name} is destroyed`, "", kept ? undo : undefined);
  });
}

function specOf(inputs: Record<string, HTMLInputElement | HTMLSelectElement>): Record<string, unknown> {
  const limits: Record<string, unknown> = {};
  const spec: Record<string, unknown> = {};
  for (const name of ["name", "image", "template", "network", "sleepAfter"]) if (inputs[name].value) spec[name] = inputs[name].value;
  if (inputs.memory.value) limits.memory = inputs.memory.value;
  if (inputs.disk.value) limits.disk = inputs.disk.value;
  if (inputs.cpu.value) limits.cpu = Number(inputs.cpu.value);
  if (Object.keys(limits).length) spec.limits = limits;
  return spec;
}

const CLI_OPTIONS: Record<string, string> = { image: "--image", template: "--template", network: "--net", sleepAfter: "--sleep-after" };

function cliOf(spec: any): string {
  const words = ["burrow create", spec.name ?? ""];
  for (const name in CLI_OPTIONS) if (spec[name]) words.push(CLI_OPTIONS[name], spec[name]);
  for (const [name, option] of [["memory", "--memory"], ["disk", "--disk"], ["cpu", "--cpus"]]) if (spec.limits?.[name]) words.push(option, spec.limits[name]);
  return words.filter((word) => word !== "").join(" ");
}

export async function createDialog(state: State, open: (sandbox: Sandbox) => void): Promise<void> {
  const templates = await get("/templates").catch(() => ({ templates: [] }));
  const inputs: Record<string, HTMLInputElement | HTMLSelectElement> = {
    name: textInput("", { name: "name", placeholder: "demo", autofocus: true }),
    image: textInput("", { placeholder: "the daemon's default" }),
    template: choice([["", "none"], ...(templates.templates ?? []).map((one: any) => [one.name, one.name] as [string, string])]),
    network: choice([["", "the daemon's default"], ["none", "none: loopback only"], ["nat", "nat: the internet"]]),
    memory: textInput("", { placeholder: "2G" }),
    disk: textInput("", { placeholder: "4G" }),
    cpu: textInput("", { type: "number", min: "0", step: "0.1", placeholder: "no limit" }),
    sleepAfter: textInput("", { placeholder: "10m" }),
  };
  const spec = () => specOf(inputs);
  dialog("New sandbox", h("div", {},
    field("Name", inputs.name, "Another name for its id; may be left empty"),
    h("div.columns", {}, field("Image", inputs.image), field("Template", inputs.template), field("Network", inputs.network), field("Sleeps after", inputs.sleepAfter),
      field("Memory", inputs.memory), field("Disk", inputs.disk), field("CPUs", inputs.cpu)),
    copyAs(snippets("POST", () => "/sandboxes", spec, () => cliOf(spec())))),
  [{ word: "Cancel" }, {
    word: "Create", kind: "primary", act: async () => {
      const started = performance.now();
      const made = await post<Sandbox>("/sandboxes", spec());
      state.put(made);
      notice(`${nameOf(made)} runs; it took ${Math.round(performance.now() - started)} ms`, "good");
      open(made);
    },
  }]);
}

function rowOf(state: State, samples: Samples, sandbox: Sandbox): HTMLElement {
  const sample = samples.of(sandbox.id);
  const isRunning = sandbox.status === "running";
  return h("div.row", {},
    h("a.name", { href: `#/sandboxes/${segment(sandbox.name ?? sandbox.id)}` }, h("b", {}, nameOf(sandbox)), h("small", {}, sandbox.labels?.forkedFrom ? "fork" : sandbox.id.slice(0, 8))),
    statusBadge(sandbox),
    h("span.cell.wide", {}, sandbox.image ?? "host", h("small", {}, sandbox.network ?? "none")),
    h("span.cell.wide.figure", {}, isRunning && sample ? [sparkline(sample.cpu, 1, "CPU"), h("small", {}, `${(latest(sample.cpu) * 100).toFixed(0)} % CPU`)] : h("small", {}, "–")),
    h("span.cell.wide.figure", {}, isRunning && sample ? [sparkline(sample.memory, sandbox.limits.memory ?? 0, "memory"), h("small", {}, bytes(latest(sample.memory)))] : h("small", {}, "–")),
    h("span.cell.wide", {}, age(sandbox.createdAt), h("small", {}, state.isAdmin && sandbox.owner !== state.me.user.id ? `of ${sandbox.owner.slice(0, 6)}` : "")),
    h("span.row-actions", {}, sandboxActions(state, sandbox).map((one) => button(one.icon, `${one.word} ${nameOf(sandbox)}`, one.act, "", one.kind ?? ""))));
}

function matches(sandbox: Sandbox, words: string[]): boolean {
  const text = [sandbox.name, sandbox.id, sandbox.status, sandbox.image ?? "host", sandbox.network, ...Object.entries(sandbox.labels ?? {}).map(([name, value]) => `${name}=${value}`)].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function quotaBars(state: State): HTMLElement | null {
  const quotas = state.me.user.quotas ?? {};
  const mine = [...state.sandboxes.values()].filter((one) => one.owner === state.me.user.id);
  const bars = [];
  if (quotas.sandboxes) bars.push(h("div", {}, "Sandboxes ", bar(mine.length, quotas.sandboxes, String)));
  if (quotas.running) bars.push(h("div", {}, "Running ", bar(mine.filter((one) => one.status === "running").length, quotas.running, String)));
  return bars.length ? h("div.quotas", {}, bars) : null;
}

export function showSandboxes(place: HTMLElement, state: State, life: Life): void {
  const samples = new Samples();
  const search = textInput("", { type: "search", placeholder: "Search: name, label=value, status", "aria-label": "Search sandboxes" });
  const told = h("small.count", { role: "status" });
  const rows = new Rows<Sandbox>(ROW, (one) => one.id, (one) => `${one.updatedAt} ${one.status} ${samples.of(one.id)?.lastTime ?? 0}`, (one) => rowOf(state, samples, one), "Sandboxes");
  const create = () => void createDialog(state, (made) => { location.hash = `#/sandboxes/${segment(made.name ?? made.id)}`; });
  const body = h("div.fill");
  const draw = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...state.sandboxes.values()].filter((one) => matches(one, words)).sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    const running = found.filter((one) => one.status === "running").length;
    told.textContent = `${count(found.length, "sandbox").replace("sandboxs", "sandboxes")}, ${running} running`;
    rows.set(found);
    if (state.sandboxes.size === 0 && state.isLoaded) {
      if (!body.querySelector(".empty")) replace(body, empty("No sandbox yet", "A sandbox is a Linux machine of its own, made in milliseconds. Make one here, or from a shell:", "burrow create demo", button("plus", "New sandbox", create, "New sandbox", "primary")));
    } else if (rows.element.parentElement !== body) replace(body, h("div.row.head", { "aria-hidden": "true" }, ["Name", "Status", "Image", "CPU", "Memory", "Age", ""].map((word, at) => h(at > 1 && at < 6 ? "span.cell.wide" : "span.cell", {}, word))), rows.element);
  };
  replace(place, h("header.bar", {}, h("h1", {}, "Sandboxes"), told, h("span.grow"), h("label.search", {}, icon("search"), search),
    state.mayWrite && button("plus", "New sandbox", create, "New", "primary")), quotaBars(state), body);
  search.addEventListener("input", draw);
  state.onChange(draw, life.signal);
  life.every(2000, () => void samples.read(rows.visible()).then(draw));
  draw();
  void samples.read(rows.visible()).then(draw);
}
