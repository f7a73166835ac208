/** The tables of adapters that rows have chosen, in one buffer: their places, and their upload. */
import type { BatchRow } from "../../../../kernels/wgsl/batch.ts";
import { chosenWords, writeChosen, type ChosenList } from "../../../../kernels/wgsl/chosen.ts";
import type { Dispatch } from "../../../../kernels/wgsl/dispatch.ts";
import type { Capacity } from "./allocate.ts";
import { BINDING_ALIGN } from "./weights.ts";

export interface ChosenPlaces {
  /** By `keyOf`; in bytes. */
  readonly lists: ReadonlyMap<string, ChosenList & { readonly offset: number; readonly size: number }>;
  /** Bytes of all tables; 0: the program has no adapters on offer. */
  readonly bytes: number;
}

/** The tables of a pass, and their buffer. */
export interface ChosenTables {
  readonly buffer: GPUBuffer;
  readonly places: ChosenPlaces;
}

const keyOf = ({ members, rows }: ChosenList): string => `${members.join()} ${rows}`;

/** @param capacity maximum rows of the passes that have the dispatches */
export function placeChosen(dispatches: readonly Dispatch[], capacity: Capacity): ChosenPlaces {
  const lists = new Map<string, ChosenList & { offset: number; size: number }>();
  let bytes = 0;
  for (const operand of dispatches.flatMap(({ operands }) => operands)) {
    if (operand.kind !== "chosen" || lists.has(keyOf(operand))) continue;
    const { members, rows } = operand;
    const size = 4 * chosenWords(operand, capacity[rows]);
    lists.set(keyOf(operand), { members, rows, offset: bytes, size });
    bytes += Math.ceil(size / BINDING_ALIGN) * BINDING_ALIGN;
  }
  return { lists, bytes };
}

/** The table of a list, which was placed. */
export function bindChosen({ buffer, places }: ChosenTables, list: ChosenList): GPUBufferBinding {
  const { offset, size } = places.lists.get(keyOf(list))!; // every operand was placed
  return { buffer, offset, size };
}

/** Uploads the tables of a run. */
export function uploadChosen(
  { queue }: Pick<GPUDevice, "queue">,
  { buffer, places }: ChosenTables,
  rows: readonly BatchRow[],
): void {
  for (const list of places.lists.values()) {
    const words = new Uint32Array(chosenWords(list, rows.length));
    const count = writeChosen(list, rows, words);
    if (count > 0) queue.writeBuffer(buffer, list.offset, words, 0, count);
  }
}
