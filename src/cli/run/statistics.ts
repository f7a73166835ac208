/** Statistics of an answer, for `--verbose`. */
import { formatDuration } from "../../base/index.ts";
import type { Json } from "../client/client.ts";

/** Lines `name: value`; empty if the object has no statistics. */
export function statisticsText(done: Json): string {
  if (typeof done["total_duration"] !== "number") return "";
  const rate = (count: number, ns: number): string => (ns > 0 ? ((count / ns) * 1e9).toFixed(2) : "0.00");
  const rows: [string, string][] = [["total duration", formatDuration(done["total_duration"])]];
  rows.push(["load duration", formatDuration(done["load_duration"] ?? 0)]);
  for (const kind of ["prompt_eval", "eval"]) {
    const count = done[`${kind}_count`] ?? 0;
    const ns = done[`${kind}_duration`] ?? 0;
    const name = kind.replace("_", " ");
    rows.push([`${name} count`, `${count} token(s)`]);
    rows.push([`${name} duration`, formatDuration(ns)]);
    rows.push([`${name} rate`, `${rate(count, ns)} tokens/s`]);
  }
  return rows.map(([name, value]) => `${`${name}:`.padEnd(22)}${value}\n`).join("");
}
