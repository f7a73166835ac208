/**
 * A loaded model on the ONNX graph: turns batches of rows into passes of the graph, and keeps the KV cache between
 * them.
 *
 * One pass runs either some tokens of one sequence, or one token each of several neighbouring slots. Unwanted slots in
 * between take part with a padding token: it is stored after their last one, where their next run overwrites it. An
 * encoder, which has no cache, runs all sequences of a batch as one pass, each padded to the longest.
 */
import { rowBytesOf } from "../../formats/quant/blocks.ts";
import type { Lowered } from "../../../../kernels/onnx/lowering.ts";
import { AppError, assert } from "../../../base/index.ts";
import type { Program, Session, StateRows } from "../../program/backend.ts";
import { makeRowChange } from "../../program/low-rank.ts";
import { ropeTable, type GrowingRopeTable } from "../../program/rope.ts";
import { batchLimits, checkBatch } from "../check-batch.ts";
import { writtenBy } from "../../program/describe.ts";
import type { Executor, Feed, KvCache, Pass } from "./executor.ts";
import { copyTokens, shiftTokens } from "./kv-cache.ts";
import { makePageDropper } from "./residency.ts";

/** Number of unwanted slots in a shared pass up to which it is cheaper than two passes. */
const GAP_SLOTS_MAX = 2;
/** A pass with this many tokens frees its memory when it is done. */
const LARGE_TOKENS = 64;
/** After this many embeddings, the table's pages are dropped: reading one row brings in many. */
const EMBEDDINGS_KEPT_MAX = 64;

export interface SessionParts {
  readonly program: Program;
  readonly lowered: Lowered;
  readonly executor: Executor;
  readonly cache: KvCache;
  readonly backend: string;
  readonly device: string;
  readonly weightBytes: number;
}

/** Sequences that share a pass, and the first of their wanted rows in the result. */
interface Group {
  readonly members: readonly StateRows[];
  readonly row: number;
}

export function makeSession(parts: SessionParts): Session {
  const { program, lowered, executor, cache } = parts;
  const limits = batchLimits(program, { ...cache, anyRows: false });
  const { keeps } = limits;
  const lengths = new Int32Array(cache.slots); // tokens in each slot
  const ropes = lowered.ropes.map((rope) => ropeTable(rope, cache.ctxLen));
  const constants = ropeFeeds(lowered, ropes, cache.ctxLen);
  const begin = lowered.embed ? makeEmbed(program, lowered.embed) : placeInputs;
  const inputDim = writtenBy(program.steps[0]!).dim; // for an embed or input step
  const discarded = new Float32Array(program.states.dim);
  let results = new Float32Array(0);
  let embeds = new Float32Array(0);

  const runGroup = async ({ members, row }: Group, { name, dim }: Result): Promise<void> => {
    const layout = keeps ? layoutOf(members, lengths) : raggedLayoutOf(members);
    const { tokens, starts } = layout;
    for (const rope of ropes) rope.reach(Math.max(...starts) + layout.tokensEach);
    if (embeds.length < tokens.length * inputDim) embeds = new Float32Array(tokens.length * inputDim);
    begin(members, layout, embeds.subarray(0, tokens.length * inputDim));
    const target = targetOf({ name, dim }, { row, wanted: layout.rows, results, discarded });
    const [rows] = target.shape;
    const head = program.logits && Array.from({ length: target.name === "logits" ? rows : 0 }, (_, i) => i);
    const inputs = inputsOf({ lowered, layout, dim: inputDim, embeds, head, ctxLen: cache.ctxLen });
    await executor.run({
      lowSlot: layout.lowSlot,
      batch: starts.length,
      feeds: [...inputs, ...constants],
      large: tokens.length >= LARGE_TOKENS,
      result: target,
    });
    if (keeps) for (const { slot, start, tokens: own } of members) lengths[slot] = start + own.length;
  };

  const runBatch = async (batch: readonly StateRows[], result: Result): Promise<Float32Array> => {
    checkBatch(batch, limits);
    const rows = batch.reduce((sum, each) => sum + wantedRows(each), 0);
    const size = rows * result.dim;
    if (results.length < size) results = new Float32Array(size);
    const groups = keeps ? groupsOf(batch, { lengths, ctxLen: cache.ctxLen }) : [{ members: batch, row: 0 }];
    for (const group of groups) await runGroup(group, result);
    const out = results.subarray(0, size);
    checkFinite(out, result);
    return out;
  };

  return {
    backend: parts.backend,
    device: parts.device,
    bytes: { weights: parts.weightBytes, kv: cacheBytes(cache), scratch: 0 },
    async run(batch) {
      assert(program.logits, "an encoder has no logits");
      const rows = batch.map(({ logits: states, ...each }) => ({ ...each, states }));
      return runBatch(rows, { name: "logits", dim: program.logits.dim });
    },
    states: (batch) => runBatch(batch, { name: "states", dim: program.states.dim }),
    shift(slot, options) {
      assert(options.length === lengths[slot], `slot ${slot} holds ${lengths[slot]} tokens, not ${options.length}`);
      const { keep, discard, length } = options;
      for (const [i, layer] of cache.layers.entries()) {
        shiftTokens(cache, { layer, slot, keep, discard, length, rope: lowered.caches[i]!.rope });
      }
      lengths[slot] = length - discard;
    },
    copy({ from, to, length }) {
      for (const layer of cache.layers) copyTokens(cache, { layer, from, to, length });
      lengths[to] = length;
    },
    close: () => executor.close(),
  };
}

type Target = Pass["result"];

/** A result of the graph, (rows, dim). */
interface Result {
  readonly name: "logits" | "states";
  readonly dim: number;
}

/**
 * Destination of a pass. Some kernels divide by the number of rows: if no row is wanted, one is computed and discarded.
 */
function targetOf(
  { name, dim }: Result,
  at: { row: number; wanted: readonly number[]; results: Float32Array; discarded: Float32Array },
): Target {
  const count = at.wanted.length;
  if (count === 0) return { name: "states", shape: [1, at.discarded.length], data: at.discarded };
  return { name, shape: [count, dim], data: at.results.subarray(at.row * dim, (at.row + count) * dim) };
}

const wantedRows = ({ states, tokens }: StateRows): number =>
  states === "all" ? tokens.length : states === "none" ? 0 : 1;

/** The slots of a pass, and the tokens of each. All have the same number of tokens. */
interface Layout {
  readonly lowSlot: number;
  /** Per slot: tokens in its cache. */
  readonly starts: Int32Array;
  /** (slots · tokensEach), −1 for padding */
  readonly tokens: Int32Array;
  /** Per slot: number of tokens without padding. */
  readonly counts: Int32Array;
  readonly tokensEach: number;
  /** Per member: the row of its first token. */
  readonly firsts: readonly number[];
  /** Wanted rows, in the order of the members. */
  readonly rows: readonly number[];
}

function layoutOf(members: readonly StateRows[], lengths: Int32Array): Layout {
  const slots = members.map(({ slot }) => slot);
  const lowSlot = Math.min(...slots);
  const count = Math.max(...slots) - lowSlot + 1;
  const tokensEach = members[0]!.tokens.length;
  const starts = lengths.slice(lowSlot, lowSlot + count);
  const tokens = new Int32Array(count * tokensEach).fill(-1);
  const firsts = members.map(({ slot }) => (slot - lowSlot) * tokensEach);
  const rows: number[] = [];
  for (const [i, member] of members.entries()) {
    const first = firsts[i]!;
    starts[member.slot - lowSlot] = member.start;
    tokens.set(member.tokens, first);
    pushWanted(rows, member, first);
  }
  return { lowSlot, starts, tokens, counts: new Int32Array(count).fill(tokensEach), tokensEach, firsts, rows };
}

/** Sequences one after another, in any slots, each padded to the longest. */
function raggedLayoutOf(members: readonly StateRows[]): Layout {
  const counts = Int32Array.from(members, ({ tokens }) => tokens.length);
  const tokensEach = Math.max(0, ...counts);
  const tokens = new Int32Array(members.length * tokensEach).fill(-1);
  const firsts = members.map((_, i) => i * tokensEach);
  const rows: number[] = [];
  for (const [i, member] of members.entries()) {
    tokens.set(member.tokens, firsts[i]!);
    pushWanted(rows, member, firsts[i]!);
  }
  const starts = Int32Array.from(members, ({ start }) => start);
  return { lowSlot: 0, starts, tokens, counts, tokensEach, firsts, rows };
}

/** @param first row of the member's first token */
function pushWanted(rows: number[], member: StateRows, first: number): void {
  const from = first + (member.states === "first" ? 0 : member.tokens.length - wantedRows(member));
  for (let i = 0; i < wantedRows(member); i++) rows.push(from + i);
}

interface Inputs {
  readonly lowered: Lowered;
  readonly layout: Layout;
  readonly dim: number;
  readonly embeds: Float32Array;
  /** The wanted rows for the logits; undefined if the result is not logits. */
  readonly head: readonly number[] | undefined;
  readonly ctxLen: number;
}

/** The inputs that change from run to run, always in the same order. */
function inputsOf({ lowered, layout, dim, embeds, head, ctxLen }: Inputs): readonly Feed[] {
  const { starts, tokensEach, rows } = layout;
  const batch = starts.length;
  const last = starts.map((start) => start + tokensEach - 1);
  const total = Int32Array.of(Math.max(...last) + 1);
  const wanted = rows.length > 0 ? rows : [0];
  const feeds: Feed[] = [
    { name: "embeds", type: "float", shape: [batch, tokensEach, dim], data: embeds },
    { name: "rows", type: "int64", shape: [wanted.length], data: BigInt64Array.from(wanted, BigInt) },
  ];
  if (head)
    feeds.push({ name: "head_rows", type: "int64", shape: [head.length], data: BigInt64Array.from(head, BigInt) });
  if (lowered.lengths) feeds.push({ name: "lengths", type: "int32", shape: [batch], data: layout.counts });
  if (lowered.caches.length > 0) {
    feeds.push({ name: "past", type: "int32", shape: [batch], data: last });
    feeds.push({ name: "total", type: "int32", shape: [], data: total });
  }
  const position = (row: number): number => starts[Math.floor(row / tokensEach)]! + (row % tokensEach);
  const count = batch * tokensEach;
  if (lowered.positions) {
    const data = BigInt64Array.from({ length: count }, (_, row) => BigInt(Math.min(position(row), ctxLen - 1)));
    feeds.push({ name: "positions", type: "int64", shape: [batch, tokensEach], data });
  }
  for (const [i, { coef, floorScale, offset }] of lowered.positionScales.entries()) {
    const factor = (row: number): number => 1 + coef * Math.log(Math.floor((position(row) + offset) / floorScale) + 1);
    const data = Float32Array.from({ length: count }, (_, row) => factor(row));
    feeds.push({ name: `position_scale.${i}`, type: "float", shape: [batch, tokensEach, 1], data });
  }
  return feeds;
}

function ropeFeeds(lowered: Lowered, tables: readonly GrowingRopeTable[], ctxLen: number): readonly Feed[] {
  return tables.flatMap(({ cos, sin }, i): Feed[] => {
    const shape = [ctxLen, lowered.ropes[i]!.rotaryDim / 2];
    return [
      { name: `cos.${i}`, type: "float", shape, data: cos },
      { name: `sin.${i}`, type: "float", shape, data: sin },
    ];
  });
}

/** Fills the initial rows, (tokens, dim); zeros for padding. */
type Begin = (members: readonly StateRows[], layout: Layout, out: Float32Array) => void;

const placeInputs: Begin = (members, { tokens, firsts }, out) => {
  const dim = out.length / tokens.length;
  out.fill(0);
  for (const [i, { input, slot, tokens: own }] of members.entries()) {
    assert(input?.length === own.length * dim, `slot ${slot}: a run without the input of its tokens`);
    out.set(input, firsts[i]! * dim);
  }
};

/** Writes the embeddings of tokens, dequantizing their rows from the file. */
function makeEmbed({ weights }: Program, { table, scale }: NonNullable<Lowered["embed"]>): Begin {
  const rowBytes = rowBytesOf(table);
  const bytes = weights.read(table.name);
  const dropPages = makePageDropper([bytes]);
  let read = 0;
  const ownFactor = table.scale?.[0] ?? 1;
  const change = table.lowRank && makeRowChange(table, weights);
  return (_members, { tokens }, out) => {
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i]!;
      const row = out.subarray(i * table.inDim, (i + 1) * table.inDim);
      if (token === -1) {
        row.fill(0);
        continue;
      }
      const from = (table.rowStart + token) * rowBytes;
      table.quant.dequantize(bytes.subarray(from, from + rowBytes), row);
      multiply(row, change ? ownFactor : ownFactor * scale);
      if (!change) continue;
      change(row, token);
      multiply(row, scale);
    }
    read += tokens.length;
    if (read < EMBEDDINGS_KEPT_MAX) return;
    dropPages();
    read = 0;
  };
}

function multiply(values: Float32Array, factor: number): void {
  if (factor === 1) return;
  for (let i = 0; i < values.length; i++) values[i]! *= factor;
}

/** Neighbouring sequences of one token each share a pass; everything else has its own. */
function* groupsOf(
  batch: readonly StateRows[],
  { lengths, ctxLen }: { lengths: Int32Array; ctxLen: number },
): Generator<Group> {
  let members: StateRows[] = [];
  let row = 0;
  let next = 0;
  for (const each of batch) {
    const last = members.at(-1);
    if (last && !(isStep(last) && isStep(each) && reaches(last.slot, each.slot))) {
      yield { members, row };
      members = [];
      row = next;
    }
    members.push(each);
    next += wantedRows(each);
  }
  if (members.length > 0) yield { members, row };

  function isStep({ tokens, states }: StateRows): boolean {
    return tokens.length === 1 && states !== "none";
  }
  /** Returns whether the slots between two can take part: few enough, and each with room for a padding token. */
  function reaches(from: number, to: number): boolean {
    if (to <= from || to - from - 1 > GAP_SLOTS_MAX) return false;
    for (let slot = from + 1; slot < to; slot++) if (lengths[slot]! >= ctxLen) return false;
    return true;
  }
}

/** Throws `runner` at the first NaN or infinite value: otherwise broken weights would be sampled from. */
function checkFinite(values: Float32Array, { name, dim }: Result): void {
  for (let i = 0; i < values.length; i++) {
    const x = values[i]!;
    if (x - x === 0) continue;
    const where = `row ${Math.floor(i / dim)}, ${name === "logits" ? "token" : "value"} ${i % dim}`;
    throw new AppError("runner", `${name}: expected finite values, found ${x} at ${where}`);
  }
}

const cacheBytes = ({ layers }: KvCache): number =>
  layers.reduce((sum, { keys, values }) => sum + keys.byteLength + values.byteLength, 0);
