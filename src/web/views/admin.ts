// What an administrator looks after, and what everybody has of it: keys, users, templates, webhooks, backups, the audit
// log, and how the daemon is.

import { all, fetchGood, get, patch, post, put, remove, segment } from "../api";
import { button, h, Life, replace, type Child } from "../dom";
import { age, bytes, moment } from "../format";
import type { State } from "../state";
import { bar } from "../ui/figures";
import { choice, copy, copyAs, empty, field, snippets, textInput } from "../ui/form";
import { attempt, confirmThen, dialog } from "../ui/notice";

interface Column<T> {
  name: string;
  of: (row: T) => Child;
}

function table<T>(columns: Column<T>[], rows: T[]): HTMLElement {
  return h("div.table", { tabindex: "0" }, h("table", {}, h("thead", {}, h("tr", {}, columns.map((one) => h("th", { scope: "col" }, one.name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((one) => h("td", {}, one.of(row))))))));
}

/** A section that reads its rows, and reads them again when told. */
function section(title: string, tools: Child, load: () => Promise<Child>): { element: HTMLElement; read: () => Promise<void> } {
  const body = h("div", {}, h("p.quiet", {}, "Reading …"));
  const read = async () => {
    try {
      replace(body, await load());
    } catch (error) {
      replace(body, h("p.problem", {}, error instanceof Error ? error.message : String(error)));
    }
  };
  return { element: h("section.card", {}, h("div.bar", {}, h("h2", {}, title), h("span.grow"), tools), body), read };
}

function toldOnce(title: string, text: string, secret: string): void {
  dialog(title, h("div", {}, h("p", {}, text), h("pre.snippet", { tabindex: "0" }, secret), button("copy", "Copy", () => void copy(secret), "Copy")), [{ word: "Done", kind: "primary" }]);
}

/* --- keys ---------------------------------------------------------------------------------- */

function makeKey(state: State, read: () => Promise<void>): void {
  const name = textInput("", { required: true, autofocus: true, placeholder: "my laptop" });
  const scope = choice([["write", "write: everything of its owner's"], ["read", "read: look, change nothing"], ...(state.isAdmin ? [["admin", "admin: everything, of everybody"] as [string, string]] : [])]);
  const ends = textInput("", { placeholder: "30d; never when empty" });
  const body = () => ({ name: name.value, scope: scope.value, ...(ends.value ? { expiresIn: ends.value } : {}) });
  dialog("New key", h("div", {}, field("Name", name), field("Scope", scope), field("Ends after", ends), copyAs(snippets("POST", () => "/keys", body, () => `burrow key create ${name.value} --scope ${scope.value}`))),
    [{ word: "Cancel" }, { word: "Make", kind: "primary", act: async () => {
      const made = await post("/keys", body());
      await read();
      toldOnce("The new key", "It is shown only now. Keep it where programs can read it and people cannot.", made.secret ?? made.key);
    } }]);
}

export function showKeys(place: HTMLElement, state: State): void {
  const keys = section("Keys", state.mayWrite && button("plus", "New key", () => makeKey(state, keys.read), "New key", "primary"), async () => {
    const rows = (await all("/keys", "keys")).filter((row) => !row.revokedAt);
    return table<any>([{ name: "Name", of: (row) => row.name }, { name: "Begins", of: (row) => h("code", {}, row.prefix) }, { name: "Scope", of: (row) => row.scope }, { name: "Last used", of: (row) => (row.usedAt ? `${age(row.usedAt)} ago` : "never") },
      { name: "Ends", of: (row) => (row.expiresAt ? moment(row.expiresAt) : "never") }, { name: "", of: (row) => state.mayWrite && button("trash", `Revoke ${row.name}`, () => confirmThen(`Revoke ${row.name}?`, "Whoever uses it is cut off at once.", "Revoke", () => remove(`/keys/${segment(row.id)}`).then(keys.read)), "", "danger") }], rows);
  });
  replace(place, h("header.bar", {}, h("h1", {}, "Keys")), keys.element);
  void keys.read();
}

/* --- users --------------------------------------------------------------------------------- */

const QUOTAS: [string, string, boolean][] = [["sandboxes", "Sandboxes", false], ["running", "Running at once", false], ["memory", "Memory", true], ["cpu", "CPUs", false], ["disk", "Disk", true], ["snapshots", "Snapshots", false], ["storage", "Storage", true], ["requestsPerMinute", "Requests a minute", false]];

function editQuotas(user: any, read: () => Promise<void>): void {
  const inputs = QUOTAS.map(([name, word, isSize]) => [name, word, textInput(user.quotas[name] ? (isSize ? bytes(user.quotas[name]).replace(/ |B/g, "") : String(user.quotas[name])) : "0"), isSize] as const);
  dialog(`Quotas of ${user.name}`, h("div.columns", {}, inputs.map(([, word, input]) => field(word, input, "0: no limit"))), [{ word: "Cancel" }, { word: "Set", kind: "primary", act: async () => {
    const quotas = Object.fromEntries(inputs.map(([name, , input, isSize]) => [name, isSize ? input.value || 0 : Number(input.value)]));
    await patch(`/users/${segment(user.id)}`, { quotas });
    await read();
  } }]);
}

function makeUser(read: () => Promise<void>): void {
  const name = textInput("", { required: true, autofocus: true });
  const email = textInput("", { type: "email", placeholder: "may be left empty" });
  dialog("New user", h("div", {}, field("Name", name), field("Email", email)), [{ word: "Cancel" }, { word: "Make", kind: "primary", act: async () => {
    const made = await post("/users", { name: name.value, ...(email.value ? { email: email.value } : {}) });
    const key = await post("/keys", { name: "first", scope: "write", user: made.id });
    await read();
    toldOnce(`A key for ${made.name}`, "Give it to them; it is shown only now.", key.secret ?? key.key);
  } }]);
}

function showUsage(state: State, user: any): HTMLElement {
  const own = [...state.sandboxes.values()].filter((one) => one.owner === user.id);
  return h("div.usage", {}, bar(own.length, user.quotas.sandboxes, (value) => `${value} sandboxes`), bar(own.filter((one) => one.status === "running").length, user.quotas.running, (value) => `${value} running`),
    bar(own.filter((one) => one.status === "running").reduce((sum, one) => sum + (one.limits.memory ?? 0), 0), user.quotas.memory, bytes));
}

export function showUsers(place: HTMLElement, state: State): void {
  const users = section("Users", button("plus", "New user", () => makeUser(users.read), "New user", "primary"), async () => table<any>([
    { name: "Name", of: (row) => h("b", {}, row.name) }, { name: "Email", of: (row) => row.email ?? "–" }, { name: "Role", of: (row) => row.role }, { name: "Usage", of: (row) => showUsage(state, row) },
    { name: "", of: (row) => h("span.row-actions", {}, button("chart", `Quotas of ${row.name}`, () => editQuotas(row, users.read)), row.id !== state.me.user.id && [
      button(row.disabled ? "play" : "stop", `${row.disabled ? "Enable" : "Disable"} ${row.name}`, () => void attempt(() => patch(`/users/${segment(row.id)}`, { disabled: !row.disabled }).then(users.read))),
      button("trash", `Remove ${row.name}`, () => confirmThen(`Remove ${row.name}?`, "Their sandboxes must be gone before.", "Remove", () => remove(`/users/${segment(row.id)}`).then(users.read)), "", "danger")]) }], await all("/users", "users")));
  replace(place, h("header.bar", {}, h("h1", {}, "Users")), users.element);
  void users.read();
}

/* --- templates, webhooks, backups ---------------------------------------------------------- */

function editTemplate(row: any, read: () => Promise<void>): void {
  const { name: oldName = "", createdAt: _, updatedAt: __, owner: ___, ...spec } = row ?? {};
  const name = textInput(oldName, { required: true, autofocus: true });
  const text = h<HTMLTextAreaElement>("textarea.code", { rows: 12, spellcheck: "false" });
  text.value = JSON.stringify(Object.keys(spec).length ? spec : { network: "nat", limits: { memory: "1G" } }, null, 2);
  dialog(oldName ? `Template ${oldName}` : "New template", h("div", {}, field("Name", name), field("Spec", text, "As the body of a create; see the API's documents")), [{ word: "Cancel" }, { word: "Keep", kind: "primary", act: async () => {
    await put(`/templates/${segment(name.value)}`, JSON.parse(text.value));
    await read();
  } }]);
}

function makeWebhook(read: () => Promise<void>): void {
  const url = textInput("", { type: "url", required: true, autofocus: true, placeholder: "https://example.org/hook" });
  const events = textInput("sandbox.*");
  dialog("New webhook", h("div", {}, field("Address", url), field("Events", events, "Types with commas between; sandbox.* is all of those")), [{ word: "Cancel" }, { word: "Make", kind: "primary", act: async () => {
    const made = await post("/webhooks", { url: url.value, events: events.value.split(",").map((one) => one.trim()) });
    await read();
    toldOnce("Its secret", "Deliveries are signed with it; it is shown only now.", made.secret);
  } }]);
}

function showDeliveries(row: any): void {
  const body = h("div", {}, "Reading …");
  dialog("Deliveries", body, [{ word: "Close", kind: "primary" }]);
  void get(`/webhooks/${segment(row.id)}/deliveries`).then(({ deliveries }) => replace(body, deliveries.length ? table<any>([{ name: "Event", of: (one) => one.event ?? one.type }, { name: "State", of: (one) => one.state ?? one.status }, { name: "Tries", of: (one) => one.attempts ?? one.tries }, { name: "Last", of: (one) => one.error ?? one.lastError ?? one.statusCode ?? "" }], deliveries) : h("p.quiet", {}, "Nothing was sent yet.")),
    (error) => replace(body, h("p.problem", {}, String(error.message))));
}

export function showStored(place: HTMLElement, state: State): void {
  const templates = section("Templates", state.mayWrite && button("plus", "New template", () => editTemplate(null, templates.read), "New"), async () => {
    const rows = (await get("/templates")).templates;
    return rows.length ? table<any>([{ name: "Name", of: (row) => h("b", {}, row.name) }, { name: "Image", of: (row) => row.image ?? row.spec?.image ?? "default" }, { name: "", of: (row) => state.mayWrite && h("span.row-actions", {}, button("gear", `Change ${row.name}`, () => void attempt(async () => editTemplate({ name: row.name, ...(await get(`/templates/${segment(row.name)}`)) }, templates.read))), button("trash", `Delete ${row.name}`, () => void attempt(() => remove(`/templates/${segment(row.name)}`)).then(templates.read), "", "danger")) }], rows)
      : empty("No template", "What new sandboxes are made from, by name.", "burrow template set web --image debian --net nat");
  });
  const webhooks = section("Webhooks", state.mayWrite && button("plus", "New webhook", () => makeWebhook(webhooks.read), "New"), async () => {
    const rows = (await get("/webhooks")).webhooks;
    return rows.length ? table<any>([{ name: "Address", of: (row) => row.url }, { name: "Events", of: (row) => (row.events ?? []).join(", ") }, { name: "State", of: (row) => row.state ?? (row.disabled ? "stopped" : "on") }, { name: "", of: (row) => h("span.row-actions", {}, button("bell", "Deliveries", () => showDeliveries(row)), state.mayWrite && button("trash", "Remove", () => void attempt(() => remove(`/webhooks/${segment(row.id)}`)).then(webhooks.read), "", "danger")) }], rows)
      : empty("No webhook", "Burrow tells your server what happens, signed and in order.");
  });
  const backups = section("Backups", null, async () => {
    const rows = await all("/backups", "backups");
    return rows.length ? table<any>([{ name: "Name", of: (row) => row.name ?? row.id.slice(0, 8) }, { name: "Folder", of: (row) => row.dir }, { name: "Size", of: (row) => bytes(row.sizeBytes) }, { name: "Made", of: (row) => moment(row.createdAt) }, { name: "Until", of: (row) => (row.expiresAt ? moment(row.expiresAt) : "for ever") }, { name: "", of: (row) => state.mayWrite && button("trash", "Delete", () => void attempt(() => remove(`/backups/${segment(row.id)}`)).then(backups.read), "", "danger") }], rows)
      : empty("No backup", "A folder of a sandbox, kept in the object store.", `curl -X POST -H "Authorization: Bearer $BURROW_KEY" ${location.origin}/burrow/v1/sandboxes/demo/backups -d '{}'`);
  });
  replace(place, h("header.bar", {}, h("h1", {}, "Kept")), templates.element, webhooks.element, backups.element);
  for (const one of [templates, webhooks, backups]) void one.read();
}

/* --- the daemon ---------------------------------------------------------------------------- */

interface Figures {
  sums: Map<string, number>; // by name, labels summed up
  shares: Map<string, Record<string, number>>; // by what is shared
}

/** Figures of /metrics. */
export function readMetrics(text: string): Figures {
  const told: Figures = { sums: new Map(), shares: new Map() };
  for (const line of text.split("\n")) {
    const match = /^([a-z_:][\w:]*)(?:\{([^}]*)\})?\s+([-+\d.eE]+)/.exec(line);
    if (!match) continue;
    told.sums.set(match[1], (told.sums.get(match[1]) ?? 0) + Number(match[3]));
    const share = /share="([^"]*)"/.exec(match[2] ?? "")?.[1];
    if (match[1].startsWith("burrow_share_") && share) told.shares.set(share, { ...told.shares.get(share), [match[1].slice("burrow_share_".length)]: Number(match[3]) });
  }
  return told;
}

const FIGURES: [string, string, (value: number) => string][] = [
  ["burrow_uptime_seconds", "Up", (value) => `${Math.round(value / 60)} min`], ["process_resident_memory_bytes", "Memory of the daemon", bytes], ["burrow_sandboxes", "Sandboxes", String], ["burrow_events_total", "Events", String],
  ["burrow_sandboxes_created_total", "Sandboxes made", String], ["burrow_sandboxes_woken_total", "Wakes", String], ["burrow_snapshots_total", "Snapshots made", String], ["burrow_objects_bytes", "In the object store", bytes],
];

export function showDaemon(place: HTMLElement, _state: State, life: Life): void {
  const health = section("How it is", null, async () => {
    const [ready, version, metrics] = await Promise.all([fetchGood("/ready").then((one) => one.json()).catch((error) => ({ problem: error.message })), get("/version"), fetchGood("/metrics").then((one) => one.text()).then(readMetrics)]);
    const { sums, shares } = metrics;
    const turn = [...sums].filter(([name]) => /loop.*(longest|max)/.test(name)).map(([, value]) => [h("dt", {}, "Longest turn of the loop"), h("dd", {}, `${(value * 1000).toFixed(1)} ms`)]);
    return [h("dl.facts", {}, h("dt", {}, "Version"), h("dd", {}, version.version), h("dt", {}, "Ready"), h("dd", {}, ready.problem ?? (ready.ready ? "yes" : "no")),
      FIGURES.filter(([name]) => sums.has(name)).map(([name, word, show]) => [h("dt", {}, word), h("dd", {}, show(sums.get(name)!))]), turn),
    h("h3", {}, "Shared by all"), table<[string, Record<string, number>]>([{ name: "What", of: ([name]) => name.replace(/_/g, " ") }, { name: "Held by all", of: ([, row]) => String(row.held ?? 0) }, { name: "By one at most", of: ([, row]) => `${row.held_most ?? row.most ?? 0}` }, { name: "Refused", of: ([, row]) => String(row.refused_total ?? row.refused ?? 0) }], [...shares])];
  });
  const care = section("Storage", h("span", {}, button("refresh", "Look whether everything that is promised is there", () => void attempt(async () => toldOnce("What was found", "fsck changes nothing.", JSON.stringify(await post("/fsck", {}), null, 2))), "fsck"),
    button("trash", "Take away what is stored and nobody names", () => void attempt(async () => toldOnce("What was taken away", "", JSON.stringify(await post("/gc", {}), null, 2))), "gc")), async () => h("p.quiet", {}, "Both may take a while on a large store."));
  const audit = section("Audit log", null, async () => table<any>([{ name: "When", of: (row) => moment(row.time) }, { name: "Who", of: (row) => row.userId?.slice(0, 8) ?? "–" }, { name: "From", of: (row) => row.address }, { name: "What", of: (row) => row.action }, { name: "Object", of: (row) => h("code", {}, row.object?.slice(0, 12) ?? "") }, { name: "Outcome", of: (row) => row.outcome }], (await get("/audit?limit=100")).entries));
  replace(place, h("header.bar", {}, h("h1", {}, "Daemon")), health.element, care.element, audit.element);
  for (const one of [health, care, audit]) void one.read();
  life.every(5000, () => void health.read());
}
