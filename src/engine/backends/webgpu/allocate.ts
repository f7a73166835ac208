/**
 * Assigns memory to activations. Every write begins a new value; a value's memory is free again after its last reader,
 * so that a dispatch never reads and writes one buffer, and scratch is as small as the live values.
 */
import type { Activation, Dispatch, Operand, RowKind } from "../../../../kernels/wgsl/dispatch.ts";
import { assert } from "../../../base/index.ts";

/** A result: the content of a buffer after the dispatches before `end`. */
export interface Result {
  readonly name: string;
  readonly end: number;
}

/** Maximum rows of each kind in a run. */
export type Capacity = Readonly<Record<RowKind, number>>;

export interface Allocation {
  /** Bytes of each shared buffer. */
  readonly sizes: readonly number[];
  /** The shared buffer of an operand. */
  placeOf(operand: Operand): number;
  /** The shared buffer of each result, in order. */
  readonly results: readonly number[];
}

interface Value {
  readonly bytes: number;
  last: number;
  place: number;
}

export function allocate(
  dispatches: readonly Dispatch[],
  { results, capacity }: { results: readonly Result[]; capacity: Capacity },
): Allocation {
  const bytesOf = ({ buf, rows, times }: Activation): number => 4 * buf.dim * times * capacity[rows];
  const current = new Map<string, Value>();
  const valueOf = new Map<Operand, Value>();
  const written: Value[][] = [];
  const finals: Value[] = [];
  const present = (name: string): Value => {
    const value = current.get(name);
    assert(value, `buffer '${name}' was not written before it is read`);
    return value;
  };
  const keep = (i: number): void => {
    for (const [at, { name, end }] of results.entries()) {
      if (end !== i) continue;
      finals[at] = present(name);
      finals[at].last = dispatches.length; // a run may return several results
    }
  };
  for (const [i, { operands }] of dispatches.entries()) {
    keep(i);
    const activations = operands.filter((operand) => operand.kind === "activation");
    for (const operand of activations) {
      if (operand.access === "write") continue;
      const value = present(operand.value.buf.name);
      value.last = i;
      valueOf.set(operand, value);
    }
    written[i] = [];
    for (const operand of activations) {
      if (operand.access !== "write") continue;
      const value = { bytes: bytesOf(operand.value), last: i, place: -1 };
      current.set(operand.value.buf.name, value);
      valueOf.set(operand, value);
      written[i].push(value);
    }
  }
  keep(dispatches.length);
  const sizes = placeValues(written);
  return {
    sizes,
    placeOf: (operand) => valueOf.get(operand)!.place, // every activation of `dispatches` was seen above
    results: finals.map(({ place }) => place),
  };
}

/** Assigns a buffer to every value; returns the bytes of each buffer. */
function placeValues(written: readonly (readonly Value[])[]): number[] {
  const sizes: number[] = [];
  const free = new Set<number>();
  const alive = new Set<Value>();
  for (const [i, values] of written.entries()) {
    for (const value of alive) {
      if (value.last >= i) continue;
      alive.delete(value);
      free.add(value.place);
    }
    for (const value of values) {
      value.place = bestPlace(free, sizes, value.bytes);
      free.delete(value.place);
      sizes[value.place] = Math.max(sizes[value.place] ?? 0, value.bytes);
      alive.add(value);
    }
  }
  return sizes;
}

/** The smallest free buffer that is large enough, else the largest, which then grows, else a new one. */
function bestPlace(free: ReadonlySet<number>, sizes: readonly number[], bytes: number): number {
  const ordered = [...free].toSorted((a, b) => sizes[a]! - sizes[b]!);
  return ordered.find((place) => sizes[place]! >= bytes) ?? ordered.at(-1) ?? sizes.length;
}
