/**
 * Removes keywords whose value is null: Go programs write nil slices and maps that way.
 */
import { MAPS } from "./read.ts";

/** Keywords whose value is data. */
export const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples", "example"]);

/** Keywords for which null is a valid value. */
const OF_NULL: ReadonlySet<string> = new Set(["const", "default"]);

/** The schema without keywords that are null. A property whose schema is null accepts any value. */
export function withoutNulls(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const fields = Object.entries(schema).filter(([key, value]) => value !== null || OF_NULL.has(key));
  return Object.fromEntries(fields.map(([key, value]) => [key, DATA.has(key) ? value : cleaned(value, MAPS.has(key))]));
}

function cleaned(value: unknown, isMap = false): unknown {
  if (Array.isArray(value)) return value.map((each) => cleaned(each));
  if (typeof value !== "object" || value === null) return value;
  if (!isMap) return withoutNulls(value as Record<string, unknown>); // an object, and not an array
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, each === null ? {} : cleaned(each)]));
}
