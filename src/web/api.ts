// The API as the page uses it: an ordinary client of /burrow/v1. Everything that a request can end with is either a
// value or an ApiError, whose message is the server's own sentence.

export const ROOT = "/burrow/v1";

export class ApiError extends Error {
  constructor(
    readonly status: number, // 0: the server was not reached
    readonly code: string,
    message: string,
    readonly requestId = "",
  ) {
    super(message);
  }
}

const KEY = "burrow.key";
let key = sessionStorage.getItem(KEY) ?? "";

/** Called when the server no longer takes our credential. */
export let onSignedOut: () => void = () => {};
export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback;
}

export function hasKey(): boolean {
  return key !== "";
}

/** Keep a key for as long as this tab lives; "" forgets it. */
export function useKey(next: string): void {
  key = next;
  if (next) sessionStorage.setItem(KEY, next);
  else sessionStorage.removeItem(KEY);
}

export interface Ask {
  method?: string;
  body?: unknown; // JSON, or a Blob, or text
  headers?: Record<string, string>;
  signal?: AbortSignal;
  bearer?: string; // another credential than ours
}

function headersOf(ask: Ask): Headers {
  const headers = new Headers(ask.headers);
  const bearer = ask.bearer ?? key;
  if (bearer) headers.set("Authorization", `Bearer ${bearer}`);
  if (ask.body !== undefined && !(ask.body instanceof Blob) && !headers.has("Content-Type"))
    headers.set("Content-Type", "application/json");
  return headers;
}

function bodyOf(body: unknown): BodyInit | undefined {
  if (body === undefined) return undefined;
  return body instanceof Blob ? body : JSON.stringify(body);
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  try {
    const told = JSON.parse(text);
    const error = told.error ?? told;
    const message = error.message ?? (typeof error === "string" ? error : text);
    return new ApiError(response.status, error.code ?? told.code ?? "", message, error.requestId ?? "");
  } catch {
    return new ApiError(response.status, "", text || `the server answered ${response.status}`);
  }
}

/** The raw answer of a path of the server, once it is known to be a good one. */
export async function fetchGood(path: string, ask: Ask = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method: ask.method ?? "GET",
      headers: headersOf(ask),
      body: bodyOf(ask.body),
      signal: ask.signal,
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    if (ask.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "Burrow cannot be reached. It may be starting again; this page tries on.");
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  if (response.status === 401 && ask.bearer === undefined) onSignedOut();
  throw error;
}

/** JSON of /burrow/v1 + path. An empty answer is null. */
export async function call<T = any>(path: string, ask: Ask = {}): Promise<T> {
  const response = await fetchGood(ROOT + path, ask);
  const text = await response.text();
  return (text ? JSON.parse(text) : null) as T;
}

export const get = <T = any>(path: string, signal?: AbortSignal) => call<T>(path, { signal });
export const post = <T = any>(path: string, body: unknown = {}) => call<T>(path, { method: "POST", body });
export const put = <T = any>(path: string, body: unknown) => call<T>(path, { method: "PUT", body });
export const patch = <T = any>(path: string, body: unknown) => call<T>(path, { method: "PATCH", body });
export const remove = (path: string) => call(path, { method: "DELETE" });

/** All rows of a list that comes in pages, at most `most`. */
export async function all<T = any>(path: string, member: string, most = 10000): Promise<T[]> {
  const rows: T[] = [];
  let more = "";
  do {
    const joint = path.includes("?") ? "&" : "?";
    const page = await get(`${path}${joint}limit=1000${more}`);
    rows.push(...(page[member] ?? []));
    // A page may be shorter than its limit and not be the last. Two words for the same are in use.
    more = page.nextCursor ? `&cursor=${encodeURIComponent(page.nextCursor)}`
      : page.next ? `&after=${encodeURIComponent(page.next)}` : "";
  } while (more && rows.length < most);
  return rows;
}

export interface Told {
  id: string;
  event: string;
  data: any;
}

/** One event of an event stream from its lines; null when it says nothing. */
export function readTold(lines: string[]): Told | null {
  const told = { id: "", event: "message", data: "" };
  for (const line of lines) {
    const at = line.indexOf(":");
    if (at === 0) continue;
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "data") told.data += (told.data ? "\n" : "") + value;
    else if (name === "id") told.id = value;
    else if (name === "event") told.event = value;
  }
  if (!told.data) return null;
  try {
    return { ...told, data: JSON.parse(told.data) };
  } catch {
    return told;
  }
}

/** Events of one request, as they come; returns when the server ends the stream. */
export async function stream(path: string, ask: Ask, tell: (told: Told) => void): Promise<void> {
  const headers = { Accept: "text/event-stream", ...ask.headers };
  const response = await fetchGood(ROOT + path, { ...ask, headers });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replace(/\r\n?/g, "\n").split("\n\n");
    rest = blocks.pop()!;
    for (const block of blocks) {
      const told = readTold(block.split("\n"));
      if (told) tell(told);
    }
  }
}

/** Follow a log for as long as `signal` lets us: again after each break, behind the last event that came. */
export async function follow(path: string, signal: AbortSignal, tell: (told: Told) => void,
                             look: (isConnected: boolean) => void = () => {}): Promise<void> {
  let last = "";
  let pause = 500;
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = last ? { "Last-Event-ID": last } : {};
      look(true);
      await stream(path, { signal, headers }, (told) => {
        pause = 500;
        if (told.id) last = told.id;
        tell(told);
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) throw error;
    }
    look(false);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 8000);
  }
}

/** A WebSocket of /burrow/v1 + path. Browsers cannot send headers with it, so the key goes in the address. */
export function socket(path: string): WebSocket {
  const address = new URL(ROOT + path, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  if (key) address.searchParams.set("token", key);
  const made = new WebSocket(address);
  made.binaryType = "arraybuffer";
  return made;
}

/** A path of segments, each as it is. */
export const segment = encodeURIComponent;
export const filePath = (path: string) => path.split("/").map(encodeURIComponent).join("/");
