// The status of a sandbox as a word with a colour; the colour is never the only sign.

import { h } from "../dom";

const KINDS: Record<string, string> = { running: "good", frozen: "cool", hibernated: "cool", error: "bad", stopped: "" };

export function statusBadge(sandbox: { status: string; tier?: string; reason?: string }): HTMLElement {
  const kind = sandbox.status in KINDS ? KINDS[sandbox.status] : "busy";
  const tier = sandbox.tier && sandbox.tier !== sandbox.status && !["running", "frozen", "hibernated"].includes(sandbox.tier) ? ` (${sandbox.tier})` : "";
  return h(`span.badge${kind ? "." + kind : ""}`, { title: sandbox.reason || null }, sandbox.status + tier);
}
