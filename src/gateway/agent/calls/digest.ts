/** The digest of a call, to which an approval applies: equal for the same tool with equal arguments in any order. */
import { createHash } from "node:crypto";
import { type Fields, isObject } from "../../../base/index.ts";

/** Hexadecimal SHA-256. */
export const digestOf = (tool: string, args: Fields): string =>
  createHash("sha256")
    .update(JSON.stringify([tool, sorted(args)]))
    .digest("hex");

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  // a list of entries, because an object would reorder keys such as "1" and give "__proto__" a special meaning
  const entries = Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const);
  return { entries: entries.toSorted(([a], [b]) => (a < b ? -1 : 1)) };
}
