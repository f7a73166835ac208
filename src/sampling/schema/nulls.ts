/**
 * Null in the place of a keyword's value is no value: Go programs write lists and maps that way which were never made.
 */
import { MAPS } from "./read.ts";

/** Keywords whose value is data. */
export const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples", "example"]);

/** Keywords of which null is a value. */
const OF_NULL: ReadonlySet<string> = new Set(["const", "default"]);

/** A schema without the keywords that are null; a property that is null may be anything. */
export function withoutNulls(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const fields = Object.entries(schema).filter(([key, value]) => value !== null || OF_NULL.has(key));
  return Object.fromEntries(fields.map(([key, value]) => [key, DATA.has(key) ? value : cleaned(value, MAPS.has(key))]));
}

function cleaned(value: unknown, isMap = false): unknown {
  if (Array.isArray(value)) return value.map((each) => cleaned(each));
  if (typeof value !== "object" || value === null) return value;
  if (!isMap) return withoutNulls(value as Record<string, unknown>); // an object that is no list
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, each === null ? {} : cleaned(each)]));
}
