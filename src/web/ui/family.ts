// A family of sandboxes over time: who was forked from whom, and which moments are kept. Pure; views/time.ts draws it.

export interface Moment {
  id: string;
  name: string | null;
  sandboxId: string;
  reason: string;
  state: string;
  size: number;
  createdAt: string;
  pauseMs?: number;
  expiresAt?: string;
}

export interface Fork {
  child: string;
  from: string;
  snapshot: string | null;
  time: string;
}

export interface Line {
  id: string;
  name: string;
  isGone: boolean;
  begin: number; // ms
  lane: number;
  from?: { lane: number; time: number };
  moments: (Moment & { time: number })[];
}

export interface Family {
  lines: Line[];
  begin: number;
  end: number;
}

export interface Member {
  id: string;
  name: string;
  createdAt: string;
}

/** The oldest ancestor that is known of `id`. */
function ancestor(id: string, forks: Map<string, Fork>): string {
  const seen = new Set<string>();
  while (forks.has(id) && !seen.has(id)) {
    seen.add(id);
    id = forks.get(id)!.from;
  }
  return id;
}

/** Everybody that descends from the same sandbox as `id`, a lane each, children behind their parents. */
export function familyOf(id: string, members: Map<string, Member>, forkList: Fork[], moments: Moment[], now: number): Family {
  const forks = new Map(forkList.map((fork) => [fork.child, fork]));
  const children = new Map<string, Fork[]>();
  for (const fork of forkList) children.set(fork.from, [...(children.get(fork.from) ?? []), fork]);
  const kept = new Map<string, Moment[]>();
  for (const moment of moments) kept.set(moment.sandboxId, [...(kept.get(moment.sandboxId) ?? []), moment]);
  const lines: Line[] = [];
  const place = (one: string, from?: Line["from"]) => {
    const member = members.get(one);
    const own = (kept.get(one) ?? []).map((moment) => ({ ...moment, time: Date.parse(moment.createdAt) })).sort((a, b) => a.time - b.time);
    const born = forks.get(one)?.time ?? member?.createdAt ?? own[0]?.createdAt;
    const below = (children.get(one) ?? []).filter((fork) => isShown(fork.child));
    if (!born && !below.length) return;
    const begin = born ? Date.parse(born) : Date.parse(below[0].time) - 1000;
    const line: Line = { id: one, name: member?.name ?? one.slice(0, 8), isGone: !member, begin, lane: lines.length, from, moments: own };
    lines.push(line);
    for (const fork of below.sort((a, b) => (a.time < b.time ? -1 : 1))) {
      const at = own.find((moment) => moment.id === fork.snapshot)?.time ?? Date.parse(fork.time);
      place(fork.child, { lane: line.lane, time: at });
    }
  };
  // A sandbox that is gone is shown while something of it is kept, or somebody below it lives.
  const isShown = (one: string): boolean => members.has(one) || (kept.get(one)?.length ?? 0) > 0 || (children.get(one) ?? []).some((fork) => isShown(fork.child));
  place(ancestor(id, forks));
  const begin = Math.min(now, ...lines.map((line) => line.begin));
  return { lines, begin, end: Math.max(now, begin + 1) };
}

/** Where a moment is between 0 and 1. Moments that are close to each other are kept apart: what counts is their order. */
export function spread(family: Family, gap: number): Map<number, number> {
  const times = [...new Set([family.begin, family.end, ...family.lines.flatMap((line) => [line.begin, ...(line.from ? [line.from.time] : []), ...line.moments.map((moment) => moment.time)])])].sort((a, b) => a - b);
  const span = family.end - family.begin;
  const places: number[] = [];
  times.forEach((time, at) => places.push(Math.max((time - family.begin) / span, at ? places[at - 1] + gap : 0)));
  const last = places[places.length - 1] || 1;
  return new Map(times.map((time, at) => [time, places[at] / last]));
}
