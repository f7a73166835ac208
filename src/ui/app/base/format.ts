/** Numbers, sizes and times for people. */

const UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** `1.2 GB`, in powers of ten. */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  for (; value >= 999.5 && unit < UNITS.length - 1; unit++) value /= 1000;
  return `${value < 9.95 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** `1,234`. */
export const countText = (count: number): string => count.toLocaleString("en-US");

/** `4 min`, of a duration. */
export function durationText(ms: number): string {
  if (ms < 950) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** `4 min ago`, or the date where that is long ago. */
export function agoText(atMs: number, nowMs: number = Date.now()): string {
  const ms = nowMs - atMs;
  if (ms < 45_000) return "just now";
  return ms < 7 * 86_400_000 ? `${durationText(ms)} ago` : new Date(atMs).toLocaleDateString();
}

/** `in 4 min`; times that are far away are for ever. */
export function untilText(atMs: number, nowMs: number = Date.now()): string {
  const ms = atMs - nowMs;
  if (ms > 10 * 365 * 86_400_000) return "never";
  return ms <= 0 ? "now" : `in ${durationText(ms)}`;
}

/** Under which a chat is listed. */
export function dayText(atMs: number, nowMs: number = Date.now()): string {
  const day = (ms: number): number => new Date(ms).setHours(0, 0, 0, 0);
  const days = Math.round((day(nowMs) - day(atMs)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "Last 7 days";
  if (days < 30) return "Last 30 days";
  return new Date(atMs).toLocaleDateString("en-US", { month: "long", year: "numeric" });
}
