/** Passes of a program whose experts are read while it runs: they pause where a router has picked experts. */
import type { Block, Memory } from "../memory.ts";
import type { ExpertStack } from "./expert-stack.ts";
import type { Streams } from "./streams.ts";

/** Words of a table of groups before its entries, and of an entry: `group` of ops/experts.h. */
const HEAD_WORDS = 2;
const ENTRY_WORDS = 4;

/** A record of products with experts. */
export interface StreamedRecord {
  readonly index: number;
  readonly stack: ExpertStack;
  /** The table of groups that it reads, with slots in place of experts. */
  readonly table: Int32Array;
}

/** The experts of a layer. */
export interface StreamedLayer {
  /** The table that the layer's `group` record writes. */
  readonly groups: Int32Array;
  readonly experts: number;
  readonly records: readonly StreamedRecord[];
}

/** An expert that rows of the pass use, as an entry of the table. */
interface Group {
  readonly expert: number;
  readonly first: number;
  readonly decode: number;
  readonly prompt: number;
}

/** Some experts of a record that are in memory together. */
interface Wave {
  readonly record: StreamedRecord;
  readonly groups: readonly Group[];
}

/** Runs a range of records; the tables are stamped with the pass's number. */
type Go = (from: number, to: number, tables: readonly Int32Array[]) => void;

/** Words of a table of groups. */
export const groupWords = (experts: number, pairs: number): number => HEAD_WORDS + ENTRY_WORDS * experts + pairs;

export function wordsOf({ view }: Block): Int32Array {
  return new Int32Array(view.buffer, view.byteOffset, view.byteLength / 4);
}

export function makeTable(memory: Memory, like: Int32Array): { readonly address: number; readonly words: Int32Array } {
  const block = memory.allocate(like.byteLength, "experts' slots");
  return { address: block.address, words: wordsOf(block) };
}

/** Runs records `from` to `to`, with the experts of these layers. */
export function runStreamed(
  layers: readonly StreamedLayer[],
  streams: Streams,
  { from, to, go }: { readonly from: number; readonly to: number; readonly go: Go },
): void {
  let at = from;
  let tables: Int32Array[] = [];
  let held: Wave[] = [];
  streams.age();
  const release = (): void => {
    for (const wave of held) releaseAll(wave);
    held = [];
  };
  for (const layer of layers) {
    const { index } = layer.records[0]!;
    if (index < from || index >= to) continue;
    if (at < index) go(at, index, tables);
    release();
    const waves = wavesOf(layer);
    tables = [layer.groups];
    at = index;
    if (waves.length === layer.records.length) {
      for (const wave of waves) request(wave, streams);
      streams.flush();
      held = waves;
      if (waves.every(isReady)) {
        for (const { record, groups } of waves) tables.push(fill(record, groups, layer));
        continue; // the next call runs these
      }
    }
    at = runWaves(waves, layer, { at, streams, go, isRequested: held.length > 0 });
    release();
  }
  go(at, to, tables);
  release();
}

/** Runs the records of a layer wave by wave, while the next wave is read. Returns the index of the next record. */
function runWaves(
  waves: readonly Wave[],
  layer: StreamedLayer,
  { at: from, streams, go, isRequested }: { at: number; streams: Streams; go: Go; isRequested: boolean },
): number {
  let at = from;
  const ahead = (wave: Wave | undefined): void => {
    if (!wave || isRequested) return;
    request(wave, streams);
    streams.flush();
  };
  ahead(waves[0]);
  for (const [i, wave] of waves.entries()) {
    ahead(waves[i + 1]);
    const { record, groups } = wave;
    const { index, stack } = record;
    if (at < index) go(at, index, [layer.groups]);
    const isThere = ({ expert }: Group): boolean => stack.isReady(expert);
    const ready = groups.filter(isThere);
    const late = groups.filter((group) => !ready.includes(group));
    for (const some of [ready, late]) {
      if (some.length === 0) continue;
      streams.wait(
        stack,
        some.map(({ expert }) => expert),
      );
      go(index, index + 1, [layer.groups, fill(record, some, layer)]);
    }
    at = index + 1;
    if (!isRequested) releaseAll(wave);
  }
  return at;
}

/** The experts that the rows use, those in memory first, in waves that fit the slots. */
function wavesOf({ groups, records }: StreamedLayer): Wave[] {
  const all = Array.from({ length: groups[0]! }, (_, i): Group => {
    const at = HEAD_WORDS + ENTRY_WORDS * i;
    return { expert: groups[at]!, first: groups[at + 1]!, decode: groups[at + 2]!, prompt: groups[at + 3]! };
  });
  return records.flatMap((record) => {
    const { stack } = record;
    const there = all.filter(({ expert }) => stack.slotOf(expert) !== undefined);
    const missing = all.filter(({ expert }) => stack.slotOf(expert) === undefined);
    const sorted = [...there, ...missing];
    const count = Math.ceil(sorted.length / stack.together);
    const size = Math.ceil(sorted.length / Math.max(1, count));
    return Array.from({ length: count }, (_, i) => ({ record, groups: sorted.slice(i * size, (i + 1) * size) }));
  });
}

function request({ record: { stack }, groups }: Wave, streams: Streams): void {
  const there = groups.filter(({ expert }) => stack.slotOf(expert) !== undefined);
  const missing = groups.filter((group) => !there.includes(group));
  for (const { expert, decode, prompt } of [...there, ...missing]) streams.request(stack, expert, decode + prompt);
}

const releaseAll = ({ record, groups }: Wave): void => {
  for (const { expert } of groups) record.stack.release(expert);
};

const isReady = ({ record, groups }: Wave): boolean => groups.every(({ expert }) => record.stack.isReady(expert));

/** Writes the groups of some experts to a record's table. */
function fill({ stack, table }: StreamedRecord, some: readonly Group[], layer: StreamedLayer): Int32Array {
  // A late thread of an earlier pass may read the first two words: it must not combine its own stamp with a new count.
  Atomics.store(table, 1, 0);
  const { groups, experts } = layer;
  let next = HEAD_WORDS + ENTRY_WORDS * experts;
  for (const [i, { expert, first, decode, prompt }] of some.entries()) {
    table.set([stack.slotOf(expert)!, next, decode, prompt], HEAD_WORDS + ENTRY_WORDS * i);
    table.set(groups.subarray(first, first + decode + prompt), next);
    next += decode + prompt;
  }
  Atomics.store(table, 0, some.length);
  return table;
}
