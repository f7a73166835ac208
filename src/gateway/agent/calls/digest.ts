/** The digest of a call: equal for the same tool with equal arguments, whatever their order. An approval is for it. */
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
  // a list of entries, because an object would order keys such as "1" itself, and treats "__proto__" in its own way
  const entries = Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const);
  return { entries: entries.toSorted(([a], [b]) => (a < b ? -1 : 1)) };
}
