/** Displayed sizes, times and tables. */

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

/** Decimal units; rounded to a tenth below ten, truncated to an integer above: `6.3 MB`, `815 MB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  const text = value >= 10 || Number.isInteger(value) ? String(Math.trunc(value)) : value.toFixed(1);
  return `${text} ${UNITS[unit]}`;
}

const SPANS: readonly (readonly [unit: string, seconds: number])[] = [
  ["year", 365 * 86_400],
  ["month", 30 * 86_400],
  ["week", 7 * 86_400],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/** `3 days ago`, `4 minutes from now`; `Forever` if the time is over 20 years away. */
export function formatWhen(time: string, nowMs: number): string {
  const seconds = (Date.parse(time) - nowMs) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds > 20 * 365 * 86_400) return "Forever"; // a model that stays has a century
  const size = Math.abs(seconds);
  const [unit, length] = SPANS.find((span) => size >= span[1]) ?? ["second", 1];
  const count = Math.floor(size / length);
  if (count === 0) return seconds < 0 ? "Less than a second ago" : "Less than a second from now";
  return `${count} ${unit}${count === 1 ? "" : "s"} ${seconds < 0 ? "ago" : "from now"}`;
}

/** Left-aligned columns, four blanks between them. */
export function formatTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = headings.length > 0 ? [headings, ...rows] : rows;
  const widths = Array.from({ length: Math.max(0, ...all.map((row) => row.length)) }, (_, column) =>
    Math.max(...all.map((row) => Bun.stringWidth(row[column] ?? ""))),
  );
  const padded = (cell: string, column: number): string =>
    cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell));
  return all.map((row) => `${row.map(padded).join("    ").trimEnd()}\n`).join("");
}

/** `45s left`, `3m12s left`, `2h5m left`, `4d left`. */
export function formatTimeLeft(seconds: number): string {
  const whole = Math.max(1, Math.ceil(seconds));
  if (whole < 60) return `${whole}s left`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}m${whole % 60}s left`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h${minutes % 60}m left` : `${Math.floor(hours / 24)}d left`;
}
