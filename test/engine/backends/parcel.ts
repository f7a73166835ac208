/** A program on its way to another process: plain values, with the tensors that its steps name. */
import { assert } from "../../../src/base/errors.ts";
import { quants, type QuantName } from "../../../src/engine/formats/quant/index.ts";
import type { Program } from "../../../src/engine/program/backend.ts";

/** A program without functions and without its file. */
export interface Parcel {
  readonly program: unknown;
  readonly path: string;
  readonly adapters: readonly string[];
  readonly tensors: ReadonlyMap<string, Uint8Array>;
}

/** Calls `make` once per value, so that identical objects stay identical, which fusion needs. */
function once(make: (value: unknown, each: (value: unknown) => unknown) => unknown): (value: unknown) => unknown {
  const made = new Map<unknown, unknown>();
  const each = (value: unknown): unknown => {
    if (!made.has(value)) made.set(value, make(value, each));
    return made.get(value);
  };
  return each;
}

/** Replaces block types by their names, and reads every tensor that a step names. */
export function wrap({ weights, ...program }: Program): Parcel {
  const tensors = new Map<string, Uint8Array>();
  const plain = once((value, each) => {
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
    if (Array.isArray(value)) return value.map(each);
    const { name } = value as { name?: unknown };
    if ("dequantize" in value) return name;
    if ("quant" in value) tensors.set(String(name), weights.read(String(name)).slice());
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, each(part)]));
  });
  return { program: plain(program), path: weights.path, adapters: weights.adapters ?? [], tensors };
}

export function unwrap({ program, path, adapters, tensors }: Parcel): Program {
  const revive = once((value, each) => {
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
    if (Array.isArray(value)) return value.map(each);
    const entries = Object.entries(value).map(([key, part]) => [
      key,
      key === "quant" ? quants[part as QuantName] : each(part),
    ]);
    return Object.fromEntries(entries);
  });
  const read = (name: string): Uint8Array => {
    const bytes = tensors.get(name);
    assert(bytes, `tensor '${name}' is in the parcel`);
    return bytes;
  };
  return { ...(revive(program) as Omit<Program, "weights">), weights: { path, adapters, read } }; // inverse of `wrap`
}
