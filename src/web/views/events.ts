// What happened: of one sandbox or of all, as it happens.

import { get } from "../api";
import { h, Life, replace } from "../dom";
import { clock, moment } from "../format";
import { addressOf, type BurrowEvent, type Sandbox, type State } from "../state";
import { empty, textInput } from "../ui/form";

const SHOWN = 300;
const KEPT = 2000;
const PAGES = 150;

function row(event: BurrowEvent, state: State): HTMLElement {
  const kind = /error|failed|lost/.test(event.type) ? ".bad" : /created|woken|started|restored/.test(event.type) ? ".good" : "";
  const { sandboxId: _, status: __, ...rest } = event.data ?? {};
  const words = Object.entries(rest).filter(([, value]) => value !== "" && value !== null).map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`);
  return h("details.event", {}, h("summary", {}, h("time", { datetime: event.time, title: moment(event.time) }, clock(event.time)), h(`span.badge${kind}`, {}, event.type),
    h("span.event-name", {}, state.sandboxes.get(event.stream)?.name ?? event.data?.name ?? ""), h("small", {}, words.slice(0, 3).join(", "))),
  h("pre.snippet", {}, JSON.stringify(event, null, 2)));
}

/** The newest of what happened until now. The log is read from its beginning: it has no other end to begin at. */
async function past(address: string, signal: AbortSignal): Promise<BurrowEvent[]> {
  let events: BurrowEvent[] = [];
  let after: string | number = 0;
  for (let pages = 0; pages < PAGES; pages++) {
    const page: { events: BurrowEvent[]; next: string | number } = await get(`${address}/events?limit=1000&after=${after}`, signal);
    events = [...events, ...page.events].slice(-KEPT);
    if (page.next === after) break; // a page may be shorter than its limit and not be the last
    after = page.next;
  }
  return events;
}

export function showEvents(place: HTMLElement, state: State, life: Life, sandbox?: Sandbox): void {
  const list = h("div.event-list", { role: "log", "aria-label": "Events" });
  const filter = textInput("", { type: "search", placeholder: "Type, such as snapshot.", "aria-label": "Filter events" });
  let events: BurrowEvent[] = [];
  const draw = () => {
    const found = events.filter((event) => event.type.includes(filter.value.trim())).slice(-SHOWN).reverse();
    replace(list, found.length ? found.map((event) => row(event, state)) : empty("No events", "Every change is an event, written down with the change itself.", "curl -N -H \"Authorization: Bearer $BURROW_KEY\" -H 'Accept: text/event-stream' " + location.origin + "/burrow/v1/events"));
  };
  const load = async () => {
    const before = events;
    try {
      events = [...(await past(sandbox ? addressOf(sandbox) : "", life.signal)), ...before];
      draw();
    } catch (error) {
      if (!life.signal.aborted) replace(list, h("p.problem", {}, error instanceof Error ? error.message : String(error)));
    }
  };
  filter.addEventListener("input", draw);
  state.onEvent((event) => {
    if (sandbox && event.stream !== sandbox.id) return;
    events.push(event);
    events.splice(0, events.length - KEPT);
    draw();
  }, life.signal);
  replace(place, h(sandbox ? "div.bar" : "header.bar", {}, !sandbox && h("h1", {}, "Events"), h("span.grow"), filter), list);
  void load();
}
