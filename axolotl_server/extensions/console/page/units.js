// Numbers as people read them.

const GROUPED = new Intl.NumberFormat("en");

export function milliseconds(seconds) {
  if (seconds === undefined || seconds === null) return "";
  const ms = seconds * 1000;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}

// A configured duration: 30 s, 1 min 30 s, 2 h.
export function duration(seconds) {
  if (seconds < 1) return `${short(seconds * 1000)} ms`;
  if (seconds < 60) return `${short(seconds)} s`;
  const parts = [[3600, "h"], [60, "min"], [1, "s"]];
  let left = Math.round(seconds);
  return parts.map(([size, unit]) => {
    const amount = Math.floor(left / size);
    left -= amount * size;
    return amount ? `${amount} ${unit}` : "";
  }).filter(Boolean).slice(0, 2).join(" ");
}

export function bytes(size) {
  if (size < 1024) return `${size} B`;
  return size < 1048576 ? `${short(size / 1024)} KiB` : `${short(size / 1048576)} MiB`;
}

export function count(number, noun) {
  const text = GROUPED.format(number);
  return noun === undefined ? text : `${text} ${noun}${number === 1 ? "" : "s"}`;
}

export function clockTime(date) {
  return date.toLocaleTimeString("en-GB", { hour12: false });
}

function short(number) {
  return String(Number(number.toFixed(1)));
}
