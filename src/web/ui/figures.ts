// Small pictures of numbers.

import { h, s } from "../dom";

/** A line without axes: what it was lately. */
export function sparkline(values: number[], most = 0, title = ""): SVGElement {
  const width = 90;
  const height = 22;
  const top = Math.max(most, ...values, 1e-9);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(height - 2 - (value / top) * (height - 4)).toFixed(1)}`);
  return s("svg", { class: "sparkline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
    s("polyline", { points: points.join(" ") }));
}

export interface Series {
  name: string;
  values: number[];
}

/** A plot over time with its name, newest value and scale. */
export function plot(title: string, series: Series[], show: (value: number) => string, most = 0): HTMLElement {
  const width = 600;
  const height = 140;
  const top = Math.max(most, ...series.flatMap((one) => one.values), 1e-9);
  const lines = series.map((one, at) => {
    const step = one.values.length > 1 ? width / (one.values.length - 1) : width;
    const points = one.values.map((value, index) => `${(index * step).toFixed(1)},${(height - (value / top) * (height - 8)).toFixed(1)}`);
    return s("polyline", { class: `line-${at}`, points: points.join(" ") });
  });
  const grid = [0.25, 0.5, 0.75].map((part) => s("line", { class: "grid", x1: 0, x2: width, y1: height * part, y2: height * part }));
  const told = series.map((one, at) => h(`span.legend.line-${at}`, {}, `${one.name ? one.name + " " : ""}${one.values.length ? show(one.values[one.values.length - 1]) : "–"}`));
  return h("figure.plot", {}, h("figcaption", {}, h("b", {}, title), told, h("small", {}, `top ${show(top)}`)),
    s("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": title }, ...grid, ...lines));
}

/** How much of a limit is used; 0 is no limit. */
export function bar(used: number, limit: number, show: (value: number) => string): HTMLElement {
  const part = limit > 0 ? Math.min(used / limit, 1) : 0;
  const meter = h<HTMLMeterElement>("meter", { min: 0, max: 1, high: 0.8, optimum: 0.2, value: part });
  return h("span.bar", {}, meter, h("small", {}, limit > 0 ? `${show(used)} of ${show(limit)}` : `${show(used)}, no limit`));
}
