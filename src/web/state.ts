// What the page knows of the sandboxes: read once, and then kept true by the daemon's events.

import { all, ApiError, follow, get, segment } from "./api";

export interface Sandbox {
  id: string;
  name: string | null;
  owner: string;
  status: string;
  tier: string;
  reason: string;
  image: string | null;
  network?: string;
  limits: Record<string, number>;
  labels: Record<string, string>;
  createdAt: string;
  activeAt: string;
  startedAt: string | null;
  [field: string]: any;
}

export interface BurrowEvent {
  cursor: string | number;
  time: string;
  type: string;
  stream: string;
  actor: string;
  requestId: string;
  data: any;
}

export interface Me {
  scope: string;
  user: { id: string; name: string; email: string | null; role: string; quotas: Record<string, number> };
}

/** Sandboxes, events and who we are, with listeners that are told about changes at most once a frame. */
export class State {
  me!: Me;
  readonly sandboxes = new Map<string, Sandbox>();
  isConnected = true;
  isLoaded = false;
  private readonly listeners = new Set<() => void>();
  private readonly eventListeners = new Set<(event: BurrowEvent) => void>();
  private readonly controller = new AbortController();
  private isTold = false;
  private readonly stale = new Set<string>();

  async open(): Promise<void> {
    this.me = await get<Me>("/whoami");
    void this.followEvents();
    await this.load();
  }

  close(): void {
    this.controller.abort();
    this.listeners.clear();
    this.eventListeners.clear();
  }

  get isAdmin(): boolean {
    return this.me.scope === "admin";
  }

  get mayWrite(): boolean {
    return this.me.scope === "admin" || this.me.scope === "write";
  }

  /** By id or name. */
  find(word: string): Sandbox | undefined {
    return this.sandboxes.get(word) ?? [...this.sandboxes.values()].find((one) => one.name === word);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.listeners.add(listener);
    signal.addEventListener("abort", () => this.listeners.delete(listener));
  }

  onEvent(listener: (event: BurrowEvent) => void, signal: AbortSignal): void {
    this.eventListeners.add(listener);
    signal.addEventListener("abort", () => this.eventListeners.delete(listener));
  }

  changed(): void {
    if (this.isTold) return;
    this.isTold = true;
    requestAnimationFrame(() => {
      this.isTold = false;
      this.listeners.forEach((listener) => listener());
    });
  }

  put(sandbox: Sandbox): void {
    this.sandboxes.set(sandbox.id, sandbox);
    this.changed();
  }

  private async load(): Promise<void> {
    const rows = await all<Sandbox>("/sandboxes", "sandboxes");
    this.sandboxes.clear();
    rows.forEach((row) => this.sandboxes.set(row.id, row));
    this.isLoaded = true;
    this.changed();
  }

  private async followEvents(): Promise<void> {
    let wasLost = false;
    await follow("/events?stream=1", this.controller.signal, (told) => this.take(told.data), (isConnected) => {
      if (isConnected && wasLost) void this.load().catch(() => {});
      wasLost = !isConnected;
      if (this.isConnected !== isConnected) {
        this.isConnected = isConnected;
        this.changed();
      }
    }).catch(() => {});
  }

  private take(event: BurrowEvent): void {
    if (!event?.type) return;
    this.eventListeners.forEach((listener) => listener(event));
    if (event.type === "sandbox.deleted") this.sandboxes.delete(event.stream);
    else if (event.type.startsWith("sandbox.")) this.reread(event.stream);
    this.changed();
  }

  /** Read one again, soon, however many events tell of it until then. */
  private reread(id: string): void {
    if (this.stale.has(id)) return;
    this.stale.add(id);
    setTimeout(async () => {
      this.stale.delete(id);
      try {
        this.put(await get<Sandbox>(`/sandboxes/${segment(id)}`));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) this.sandboxes.delete(id);
        this.changed();
      }
    }, 60);
  }
}

/** What a sandbox is called on the page. */
export const nameOf = (sandbox: Sandbox) => sandbox.name ?? sandbox.id.slice(0, 10);
export const addressOf = (sandbox: Sandbox) => `/sandboxes/${segment(sandbox.id)}`;
export const isAsleep = (sandbox: Sandbox) => sandbox.status === "frozen" || sandbox.status === "hibernated";
