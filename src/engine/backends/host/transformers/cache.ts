/**
 * Keys and values of sequences in the library's form: tensors that a run reads and creates anew, one position longer
 * per token. Tensors are never overwritten, so that slots can share them.
 */
import { AppError } from "../../../../base/index.ts";
import type { SlotBytes } from "../../../program/backend.ts";
import { firstOf, type Library, type LibraryModel, type Tensor } from "./library.ts";

/** Keys and values of the first positions of a sequence, by the names of the graph's inputs. */
export interface Past {
  readonly length: number;
  readonly tensors: Readonly<Record<string, Tensor>>;
}

/** The axis of positions of each cache input. */
export type PastAxes = ReadonlyMap<string, number>;

export const NO_PAST: Past = { length: 0, tensors: {} };

const VALUE_BYTES: Readonly<Record<string, number>> = { float32: 4, float16: 2, bfloat16: 2, int8: 1, uint8: 1 };

/** Throws `unsupported` if the graph's names do not reveal the axis of positions. */
export function pastAxes({ sessions }: Pick<LibraryModel, "sessions">, what: string): PastAxes {
  const axes = new Map<string, number>();
  for (const { name, shape } of Object.values(sessions).flatMap(({ inputMetadata }) => inputMetadata)) {
    if (!name.startsWith("past_key_values.")) continue;
    const named = [...shape.keys()].filter((axis) => /past|cache|kv_len/i.test(String(shape[axis])));
    const [axis] = named;
    if (axis === undefined || named.length > 1) {
      const found = `(${shape.join(", ")})`;
      throw new AppError("unsupported", `${what}: input '${name}': expected one axis 'past_…', got ${found}`);
    }
    axes.set(name, axis);
  }
  return axes;
}

/** Bytes per token; named sizes count as 1. */
export function pastBytes({ sessions }: Pick<LibraryModel, "sessions">): SlotBytes {
  let perToken = 0;
  for (const { name, shape, type } of Object.values(sessions).flatMap(({ inputMetadata }) => inputMetadata)) {
    if (!name.startsWith("past_key_values.")) continue;
    const values = shape.reduce<number>((product, size) => product * (typeof size === "number" ? size : 1), 1);
    perToken += values * (VALUE_BYTES[type] ?? 4);
  }
  return { perToken, once: 0 };
}

/** The first `length` positions, or all if there are fewer. */
export function shortened(
  past: Past,
  { length, axes, make }: { length: number; axes: PastAxes; make: Library["Tensor"] },
): Past {
  if (length >= past.length) return past;
  if (length === 0) return NO_PAST;
  const tensors = Object.entries(past.tensors).map(([name, tensor]) => {
    return [name, firstOf(tensor, { axis: axes.get(name)!, length, make })] as const; // made by `pastOf`
  });
  return { length, tensors: Object.fromEntries(tensors) };
}

/** The past that a run returned. Throws `bad_file` if a part is missing. */
export function pastOf(
  outputs: Readonly<Record<string, Tensor>>,
  { length, axes, what }: { length: number; axes: PastAxes; what: string },
): Past {
  const tensors = [...axes].map(([name, axis]) => {
    const output = name.replace("past_key_values", "present");
    const tensor = outputs[output];
    if (tensor?.dims[axis] === length) return [name, tensor] as const;
    const found = tensor ? `(${tensor.dims.join(", ")})` : "none";
    throw new AppError("bad_file", `${what}: output '${output}': expected ${length} positions, got ${found}`);
  });
  return { length, tensors: Object.fromEntries(tensors) };
}
