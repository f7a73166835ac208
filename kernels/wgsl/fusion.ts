/** Tools for fusions: replacing neighbours, and finding readers of values. */
import { assert } from "../../src/base/index.ts";
import type { Activation, Dispatch, Operand, Params } from "./dispatch.ts";

export type Fusion = (dispatches: readonly Dispatch[], results: ReadonlySet<string>) => Dispatch[];
export type Value = Extract<Operand, { kind: "activation" }>;

/** The replacement of the first `length` dispatches of a list. */
export interface Fused {
  readonly length: number;
  readonly dispatches: readonly Dispatch[];
}

/** Replaces every run for which `make` returns fewer dispatches. It gets all dispatches from the first of a run on. */
export function replace(list: readonly Dispatch[], make: (from: readonly Dispatch[]) => Fused | undefined): Dispatch[] {
  const out: Dispatch[] = [];
  for (let i = 0; i < list.length;) {
    const made = make(list.slice(i));
    out.push(...(made?.dispatches ?? [list[i]!]));
    i += made?.length ?? 1;
  }
  return out;
}

/**
 * Like `replace`, for runs of `length` dispatches that become one. `make` gets the run, and all dispatches after it.
 */
export function replaceRuns(
  list: readonly Dispatch[],
  length: number,
  make: (run: readonly Dispatch[], rest: readonly Dispatch[]) => Dispatch | undefined,
): Dispatch[] {
  return replace(list, (from) => {
    const dispatch = from.length < length ? undefined : make(from.slice(0, length), from.slice(length));
    return dispatch && { length, dispatches: [dispatch] };
  });
}

export const nameOf = ({ value }: { value: Activation }): string => value.buf.name;

export const isSameBuffer = (a: Operand | undefined, b: Operand | undefined): boolean =>
  a?.kind === "activation" && b?.kind === "activation" && nameOf(a) === nameOf(b);

/** Some of a dispatch's parameters, renamed for another kernel. */
export function renamed({ kernel, params }: Dispatch, names: Readonly<Record<string, string>>): Params {
  return Object.fromEntries(
    Object.entries(names).map(([name, own]) => {
      const value = params[own];
      assert(value !== undefined, `kernel ${kernel} has no parameter ${own}`);
      return [name, value];
    }),
  );
}

/** Like `renamed`, but parameters keep their names. */
export const some = (dispatch: Dispatch, names: readonly string[]): Params =>
  renamed(dispatch, Object.fromEntries(names.map((name) => [name, name])));

/** Returns whether a buffer's current value is read before the next one. */
export function isRead(name: string, rest: readonly Dispatch[], results: ReadonlySet<string>): boolean {
  for (const { operands } of rest) {
    const uses = operands.filter((operand) => operand.kind === "activation" && nameOf(operand) === name) as Value[];
    if (uses.some(({ access }) => access !== "write")) return true;
    if (uses.length > 0) return false;
  }
  return results.has(name);
}
