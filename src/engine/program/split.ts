/**
 * One program on two backends: its first layers on one, the last ones and the output on the other. The program is cut
 * where the fewest activations are live: the stream between two layers, and the results of earlier layers that later
 * ones read. They are transferred once per run, concatenated. Layers are counted like `num_gpu`: the output is the
 * first, then come the last layer and the earlier ones.
 */
import { AppError, assert, checkNotCancelled } from "../../base/index.ts";
import type {
  Backend,
  LoadOptions,
  TopKRows,
  TopKRuns,
  Program,
  Rows,
  Session,
  SlicedRun,
  SlicedRuns,
  StateRows,
} from "./backend.ts";
import type { Checkpoints, KvBlocks } from "./kept-slots.ts";
import { joinBlocks, joinCheckpoints } from "./joined-states.ts";
import { mixesRows, readsOf, writtenBy } from "./describe.ts";
import { memoryFor } from "./memory.ts";
import { describePlacement, placementOf } from "./placement.ts";
import { kvStates } from "./sequence-state.ts";
import { statesEnd } from "./states.ts";
import type { Buf, Step } from "./step.ts";

/** A program in two: the hidden states of `front` are the input of `back`. */
export interface Cut {
  readonly front: Program;
  readonly back: Program;
  /** Only wanted rows are transferred: `front` selects them. */
  readonly taken: boolean;
}

/** Rows of a run in parts: the first layers may be on the CPU. */
const SLICED_ROWS = 256;

/** The number of divisible units: layers, plus the output if there is one. */
export function layerCount(program: Pick<Program, "steps" | "logits">): number {
  return attentionsOf(program.steps).length + (program.logits ? 1 : 0);
}

/** Cuts off the last `count` units of `layerCount`, at least one and not all. */
export function cutProgram(program: Program, count: number): Cut {
  const { steps, weights, shape, logits, states } = program;
  const remembering = (part: readonly Step[]): Pick<Program, "memory"> => {
    const memory = memoryFor(part, program.memory);
    return memory ? { memory } : {};
  };
  assert(count > 0 && count < layerCount(program), `a cut before the last ${count} of ${layerCount(program)}`);
  const layers = attentionsOf(steps);
  const layer = layerCount(program) - count; // the first after the cut, or the output
  const at = layer === layers.length ? statesEnd(program) : startOf(program, layers, layer);
  if (steps.slice(at).some(({ op }) => op === "addGiven")) {
    const which = `'${shape.arch}' adds parts of images in layer ${layer} and behind`;
    throw new AppError("unsupported", `${weights.path}: ${which}: it cannot be cut there`);
  }
  const { given, joins, slices } = joined(aliveBefore(steps, at));
  const adapters = program.adapters && { adapters: program.adapters };
  const [before, after] = [steps.slice(0, at), steps.slice(at)];
  const taken = before.some(({ op }) => op === "takeRows");
  const outside = { name: `${given.name}.input`, dim: given.dim };
  const begin: Step[] = taken
    ? [
        { op: "input", out: outside },
        { op: "takeRows", out: given, x: outside },
      ]
    : [{ op: "input", out: given }];
  return {
    front: {
      shape,
      steps: [...before, ...joins],
      logits: undefined,
      states: given,
      weights,
      ...adapters,
      ...remembering(before),
    },
    back: {
      shape,
      steps: [...begin, ...slices, ...after],
      logits,
      states,
      weights,
      ...adapters,
      ...remembering(after),
    },
    taken,
  };
}

/** Concatenates activations to one, `given`: returns the steps that do so, and the steps that take it apart again. */
function joined(all: readonly Buf[]): { given: Buf; joins: Step[]; slices: Step[] } {
  const [first, ...others] = all;
  assert(first, "an activation crosses a cut");
  let given = first;
  const joins = others.map((b, i): Step => {
    const a = given;
    given = { name: `cut.${i}`, dim: a.dim + b.dim };
    return { op: "join", out: given, a, b, heads: 1 };
  });
  let end = 0;
  const slices = all.map((out): Step => ({ op: "slice", out, x: given, heads: 1, at: (end += out.dim) - out.dim }));
  return { given, joins, slices: others.length > 0 ? slices : [] };
}

/** The index of each layer's first step that mixes rows: attention or its replacement. */
function attentionsOf(steps: readonly Step[]): number[] {
  const seen = new Set<number>();
  return steps.flatMap((step, i) => {
    if (!mixesRows(step)) return [];
    if (!("layer" in step)) return [i];
    if (seen.has(step.layer)) return [];
    seen.add(step.layer);
    return [i];
  });
}

/** The step between the previous layer's attention and this layer's where the fewest activations are live. */
function startOf(program: Program, layers: readonly number[], layer: number): number {
  let [best, fewest] = [-1, Infinity];
  for (let at = layers[layer]!; at > layers[layer - 1]!; at--) {
    const count = aliveBefore(program.steps, at).length;
    if (count < fewest && !sharesAcross(program.steps, at)) [best, fewest] = [at, count];
  }
  if (best >= 0) return best;
  const text = `layers from ${layer} on read keys or chosen positions of earlier layers`;
  throw new AppError("unsupported", `${program.weights.path}: ${text}`);
}

/** The live activations at step `at`: the ones that later steps read. */
function aliveBefore(steps: readonly Step[], at: number): Buf[] {
  const alive = new Map<string, Buf>();
  for (const step of steps.slice(at).toReversed()) {
    alive.delete(writtenBy(step).name);
    for (const buf of readsOf(step)) alive.set(buf.name, buf);
  }
  return [...alive.values()];
}

/**
 * Returns whether a step from `at` on reads a KV cache that an earlier one fills, or positions that an earlier one
 * chose, which backends number differently.
 */
function sharesAcross(steps: readonly Step[], at: number): boolean {
  const chosen = new Set(steps.slice(0, at).flatMap((step) => (step.op === "choosePositions" ? [step.out.name] : [])));
  if (aliveBefore(steps, at).some(({ name }) => chosen.has(name))) return true;
  const stored = new Set(kvStates(steps.slice(at)).map(({ layer }) => layer));
  return steps.slice(at).some((step) => step.op === "sharedAttention" && !stored.has(step.source));
}

/** Loads both parts, first the one with the last `count` layers, which may run out of memory. */
export async function loadSplit(
  program: Program,
  options: LoadOptions,
  { front, back, count }: { front: Backend; back: Backend; count: number },
): Promise<Session> {
  const cut = cutProgram(program, count);
  const share = count / layerCount(program);
  const { onProgress, signal } = options;
  const last = await back.load(cut.back, { ...options, onProgress: (done) => onProgress?.(done * share) });
  try {
    checkNotCancelled(signal);
    const onFront = (done: number): void => onProgress?.(share + done * (1 - share));
    const first = await front.load(cut.front, { ...options, onProgress: onFront });
    return new SplitSession({ cut, first, last, count });
  } catch (error) {
    last.close();
    throw error;
  }
}

interface SplitParts {
  readonly cut: Cut;
  readonly first: Session;
  readonly last: Session;
  readonly count: number;
}

/** The input of the second part for a batch entry: rows become the transferred activations, vectors included. */
interface Crossed extends CrossingInputs, Pick<StateRows, "slot" | "start" | "drafted"> {
  /** Its index in the batch. */
  readonly at: number;
  readonly tokens: Int32Array;
  readonly input: Float32Array;
  readonly states: "none" | "first" | "last" | "all";
}

/** Owns both sessions; `close` closes them. */
class SplitSession implements Session {
  readonly backend: string;
  readonly device: string;
  readonly placement: NonNullable<Session["placement"]>;
  readonly lost?: Promise<Error>;
  readonly bytes: Session["bytes"];
  readonly vramBytes: number;
  readonly gpuLayers: NonNullable<Session["gpuLayers"]>;
  readonly topK?: TopKRuns;
  readonly checkpoints?: Checkpoints;
  readonly blocks?: KvBlocks;
  readonly verifies: boolean;
  readonly slices?: SlicedRuns;
  readonly #parts: SplitParts;

  constructor(parts: SplitParts) {
    const { first, last, cut, count } = parts;
    this.#parts = parts;
    const all = layerCount(cut.back) + layerCount(cut.front);
    const backends = new Set([last, first].flatMap(({ backend }) => backend.split("+")));
    this.backend = [...backends].join("+");
    this.placement = [...placementOf(last, count), ...placementOf(first, all - count)];
    this.device = describePlacement(this.placement);
    const lost = [first.lost, last.lost].filter((each) => each !== undefined);
    if (lost.length > 0) this.lost = Promise.race(lost);
    const sum = (key: keyof Session["bytes"]): number => first.bytes[key] + last.bytes[key];
    this.bytes = { weights: sum("weights"), kv: sum("kv"), scratch: sum("scratch") };
    this.vramBytes = (first.vramBytes ?? 0) + (last.vramBytes ?? 0);
    const cpuExperts = (first.gpuLayers?.cpuExperts ?? 0) + (last.gpuLayers?.cpuExperts ?? 0);
    const layers = (first.gpuLayers?.count ?? 0) + (last.gpuLayers?.count ?? count);
    this.gpuLayers = { count: layers, all, ...(cpuExperts > 0 && { cpuExperts }) };
    const checkpoints = joinCheckpoints([first, last]);
    if (checkpoints) this.checkpoints = checkpoints;
    const blocks = joinBlocks([first, last]);
    if (blocks) this.blocks = blocks;
    this.verifies = Boolean(first.verifies && last.verifies);
    if (cut.back.logits) this.slices = { rowsMax: SLICED_ROWS, start: (rows) => this.#startSliced(rows) };
    if (last.topK) this.topK = { limits: last.topK.limits, run: (batch) => this.#runTopK(last.topK!, batch) };
  }

  readonly run: Session["run"] = async (batch) => this.#parts.last.run(await this.#crossForLogits(batch));

  async #runTopK(topK: TopKRuns, batch: readonly TopKRows[]): ReturnType<TopKRuns["run"]> {
    return topK.run(await this.#crossForLogits(batch));
  }

  /** A run in two parts: the first layers, then the others. */
  #startSliced(rows: Rows): SlicedRun {
    let [crossed, longestNs] = [undefined as Rows[] | undefined, 0];
    const timed = async <T>(work: Promise<T>): Promise<T> => {
      const startedMs = performance.now();
      const result = await work;
      longestNs = Math.max(longestNs, (performance.now() - startedMs) * 1e6);
      return result;
    };
    return {
      get longestNs() {
        return longestNs;
      },
      next: async () => {
        if (crossed) return timed(this.#parts.last.run(crossed));
        const given = await timed(this.#crossForLogits([rows]));
        // The array of the input belongs to the first part, which other runs may use meanwhile.
        crossed = given.map(({ input, ...each }) => ({ ...each, ...(input && { input: input.slice() }) }));
        return undefined;
      },
    };
  }

  readonly states: Session["states"] = async (batch) => {
    const crossed = await this.#cross(batch);
    return this.#parts.last.states(crossed.map(({ at: _at, ...rows }) => rows));
  };

  readonly shift: Session["shift"] = (...args) => {
    for (const session of this.#sessions) session.shift(...args);
  };

  readonly copy: Session["copy"] = async (...args) => {
    for (const session of this.#sessions) await session.copy(...args);
  };

  readonly close: Session["close"] = () => {
    for (const session of this.#sessions) session.close();
  };

  get #sessions(): readonly Session[] {
    return [this.#parts.first, this.#parts.last];
  }

  async #crossForLogits<T extends Rows>(batch: readonly T[]): Promise<T[]> {
    const crossed = await this.#cross(batch.map((rows) => ({ ...rows, states: rows.logits })));
    return crossed.map(({ at, states: logits, ...rows }) => {
      const { vectors: _vectors, positions: _positions, spans: _spans, memory: _memory, ...more } = batch[at]!;
      return { ...(more as T), ...rows, logits };
    });
  }

  /** Runs the first part; returns the input of the last part. If the front selects rows, only wanted ones continue. */
  async #cross(batch: readonly StateRows[]): Promise<Crossed[]> {
    const { first, cut } = this.#parts;
    const { taken } = cut;
    const rows = batch.map(({ slot, start, tokens, vectors, drafted = false, states, ...more }): StateRows => {
      const own = { ...(vectors && { vectors }), ...crossing(more, cut.front) };
      return { slot, start, tokens, ...own, drafted, states: taken ? states : "all" };
    });
    const values = await first.states(rows).catch((error: unknown) => {
      throw this.#located(error);
    });
    const { dim } = cut.front.states;
    let done = 0;
    return rows.flatMap(({ slot, start, tokens, drafted = false, states, ...more }, at): Crossed[] => {
      const count = states === "all" ? tokens.length : states === "none" ? 0 : 1;
      const input = values.subarray(done * dim, (done + count) * dim);
      done += count;
      const own = { ...crossing({ ...more, memory: batch[at]!.memory }, cut.back), drafted };
      if (!taken) return [{ at, slot, start, tokens, input, ...own, states: batch[at]!.states }];
      const wanted = states === "all" ? "all" : "last"; // the first one crosses alone
      const { adapters = [] } = own;
      return count === 0
        ? []
        : [{ at, slot, start, tokens: tokens.subarray(0, count), input, adapters, drafted, states: wanted }];
    });
  }

  /** Adds the layers and the device to the message: each part numbers only its own steps. */
  #located(error: unknown): unknown {
    if (!(error instanceof AppError) || error.code !== "runner") return error;
    const { first, cut } = this.#parts;
    const layers = layerCount(cut.front);
    const which = layers === 1 ? "layer 0" : `layers 0 to ${layers - 1}`;
    return new AppError("runner", `${which}, on ${first.device}: ${error.message}`, { cause: error });
  }
}

type CrossingInputs = Pick<StateRows, "positions" | "spans" | "memory" | "adapters">;

/** Inputs of one part apart from its rows. */
const crossing = ({ positions, spans, memory, adapters }: CrossingInputs, part: Program): CrossingInputs => ({
  ...(positions && { positions }),
  ...(spans && { spans }),
  ...(memory && part.memory && { memory }),
  ...(adapters && { adapters }),
});
