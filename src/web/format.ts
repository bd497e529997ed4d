// Numbers and times as people read them.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "–";
  let unit = 0;
  while (count >= 1000 && unit < UNITS.length - 1) {
    count /= 1024;
    unit++;
  }
  return `${count < 10 && unit > 0 ? count.toFixed(1) : Math.round(count)} ${UNITS[unit]}`;
}

const STEPS: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function duration(seconds: number): string {
  for (const [size, name] of STEPS) if (seconds >= size) return `${Math.floor(seconds / size)} ${name}`;
  return "now";
}

export function age(time: string | null | undefined): string {
  return time ? duration((Date.now() - Date.parse(time)) / 1000) : "–";
}

export function clock(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toLocaleTimeString();
}

export function moment(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toLocaleString();
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}

export function money(micros: number | null | undefined): string {
  return micros === null || micros === undefined ? "–" : `$${(micros / 1e6).toFixed(micros < 1e4 ? 4 : 2)}`;
}
