/** What to say of a key that a schema does not have: the nearest one that it has. */
import { z } from "zod";
import type { Path } from "./positions.ts";

/** Edits between a key and the one that was meant. */
const EDITS_MAX = 2;

/** @param schema of the whole; @param path of the key, from there */
export function unknownKey(schema: z.ZodType, path: Path): string {
  const near = nearest(String(path.at(-1)), keysAt(schema, path.slice(0, -1)));
  return near === undefined ? "unknown key" : `unknown key; did you mean '${near}'?`;
}

/** Keys that an object at a path may have. */
function keysAt(schema: z.core.$ZodType, path: Path): readonly string[] {
  const inner = innerOf(schema);
  if (inner instanceof z.ZodUnion) return inner.options.flatMap((option) => keysAt(option, path));
  const [key, ...rest] = path;
  if (inner instanceof z.ZodObject) {
    if (key === undefined) return Object.keys(inner.shape);
    return Object.hasOwn(inner.shape, key) ? keysAt(inner.shape[key]!, rest) : [];
  }
  if (key === undefined) return [];
  if (inner instanceof z.ZodArray) return keysAt(inner.element, rest);
  return inner instanceof z.ZodRecord ? keysAt(inner.valueType, rest) : [];
}

/** Without what says when a value may be absent, or what becomes of it. */
function innerOf(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodLazy) return innerOf(schema.unwrap());
  if (schema instanceof z.ZodPipe) return innerOf(schema.in);
  const isWrapper =
    schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
  return isWrapper ? innerOf(schema.unwrap()) : schema;
}

/** @param known names; undefined: none is near */
function nearest(name: string, known: readonly string[]): string | undefined {
  const near = known.map((each) => ({ each, edits: editsBetween(name.toLowerCase(), each.toLowerCase()) }));
  const [best] = near.toSorted((a, b) => a.edits - b.edits);
  return best && best.edits <= Math.min(EDITS_MAX, Math.floor(name.length / 2)) ? best.each : undefined;
}

/** Letters put in, left out, changed, or swapped with their neighbour. */
function editsBetween(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array.from({ length: b.length }, () => 0)]);
  for (let j = 1; j <= b.length; j++) rows[0]![j] = j;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const change = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwap ? rows[i - 2]![j - 2]! + 1 : Infinity;
      rows[i]![j] = Math.min(rows[i - 1]![j]! + 1, rows[i]![j - 1]! + 1, change, swap);
    }
  }
  return rows[a.length]![b.length]!;
}
