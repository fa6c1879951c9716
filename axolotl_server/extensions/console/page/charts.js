// Small charts of latencies.

import { svg } from "./dom.js";
import { count as counted, milliseconds } from "./units.js";

const STEPS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30];

export function summary(latencies) {
  const sorted = latencies.map((one) => one.seconds).sort((a, b) => a - b);
  const at = (share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  const failed = latencies.filter((one) => one.failed).length;
  return { count: sorted.length, failed, median: at(0.5), slow: at(0.95), slowest: sorted[sorted.length - 1] };
}

export function inWords(latencies) {
  const { count, failed, median, slow } = summary(latencies);
  return `${counted(count, "call")}${failed ? `, ${failed} failed` : ""}; median ${milliseconds(median)}, 95th percentile ${milliseconds(slow)}`;
}

// A line through the latest calls, newest on the right; failures are squares.
export function sparkline(latencies, width = 120, height = 28) {
  const shown = latencies.slice(-40);
  const top = Math.max(...shown.map((one) => one.seconds), 1e-6);
  const x = (place) => (shown.length === 1 ? width - 4 : 4 + (place * (width - 8)) / (shown.length - 1));
  const y = (one) => height - 4 - (one.seconds / top) * (height - 8);
  const points = shown.map((one, place) => `${x(place).toFixed(1)},${y(one).toFixed(1)}`).join(" ");
  const marks = shown.map((one, place) => (one.failed
    ? svg("rect", { class: "failed", x: x(place) - 2.5, y: y(one) - 2.5, width: 5, height: 5 })
    : place === shown.length - 1 ? svg("circle", { class: "last", cx: x(place), cy: y(one), r: 2.5 }) : null));
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": inWords(latencies) },
    svg("polyline", { points }), ...marks);
}

// The distribution of latencies, in steps of about three times the previous one.
export function histogram(latencies, width = 240, height = 64) {
  const counts = new Array(STEPS.length + 1).fill(0);
  for (const one of latencies) counts[STEPS.filter((step) => one.seconds > step).length] += 1;
  const top = Math.max(...counts, 1), wide = width / counts.length;
  const bars = counts.map((count, place) => {
    const tall = count ? Math.max(2, (count / top) * (height - 16)) : 0;
    return svg("rect", { x: place * wide + 1, y: height - 14 - tall, width: wide - 2, height: tall });
  });
  const labels = [["1 ms", 1], ["10", 3], ["100", 5], ["1 s", 7], ["10 s", 9]].map(([text, place]) =>
    svg("text", { x: place * wide, y: height - 2, "text-anchor": "middle" }, text));
  const base = svg("line", { x1: 0, x2: width, y1: height - 14, y2: height - 14 });
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": inWords(latencies) },
    ...bars, base, ...labels);
}
