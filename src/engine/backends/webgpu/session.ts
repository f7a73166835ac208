/**
 * A loaded model on a device: divides batches of rows into chunks that fit the plan, each with one submit and one
 * readback.
 */
import { TOP_K_LIMITS } from "../../../../kernels/wgsl/candidates.ts";
import { AppError, assert } from "../../../base/index.ts";
import type { TopK } from "../../text/sampling/top-k.ts";
import type { LoadOptions, TopKRows, TopKRuns, Program, Rows, RunWithStates, Session } from "../../program/backend.ts";
import { isMixed, runApart, type RunResult } from "./adapted-runs.ts";
import { checkRequest, type Chooser } from "./chooser.ts";
import { ChunkRuns, type ResultName, type Results } from "./chunk-runs.ts";
import { chunksOf, wholeRows, type Chunk, type WantedRows } from "./chunks.ts";
import type { Device } from "./device.ts";
import { copyTokens, shiftTokens, type ShiftParts } from "./kv-cache.ts";
import { makeHostRuns, type HostRuns } from "./host-steps.ts";
import { cutFrom, type Stop } from "./stops.ts";
import { reachRope } from "./memory.ts";
import { makeKvBlocks } from "./kv-blocks.ts";
import { makeMemories, type DeviceMemories } from "./memories.ts";
import { GEMV_ROWS_MAX, type Plan } from "./plan.ts";
import type { KeptSlots } from "./slot-states.ts";
import { encodeDispatches, type Counts, type Pass } from "./record.ts";
import { findFault } from "./fault.ts";
import { makeRowInputs, type RowInputs } from "./row-inputs.ts";
import { makeSlices, type Uploaded } from "./slices.ts";
import { layerCount } from "../../program/split.ts";
import { batchLimits, checkBatch, positionsEnd, type BatchLimits } from "../check-batch.ts";
import { runsWhole, writtenBy } from "../../program/describe.ts";

/**
 * An encoder's run of more rows is submitted in parts of about one layer: other runs come between them, and each part
 * is short enough for a driver's watchdog.
 */
const LONG_RUN = { rows: 2048, dispatches: 12 };

export interface SessionParts {
  readonly device: Device;
  readonly program: Program;
  readonly options: LoadOptions;
  readonly plan: Plan;
  readonly shift: ShiftParts;
  /** Set if there are logits. */
  readonly chooser: Chooser | undefined;
  /** Set if there are states besides keys and values. */
  readonly states: KeptSlots | undefined;
}

const NONE = new Float32Array(0);

/** Owns the buffers of a model on the device; `close` destroys them. */
export class WebGpuSession implements Session {
  readonly backend = "webgpu";
  readonly device: string;
  readonly lost: Promise<Error>;
  readonly bytes: Session["bytes"];
  readonly vramBytes: number;
  readonly topK?: TopKRuns;
  readonly runWithStates?: NonNullable<Session["runWithStates"]>;
  readonly held: NonNullable<Session["held"]>;
  readonly checkpoints?: NonNullable<Session["checkpoints"]>;
  readonly blocks?: NonNullable<Session["blocks"]>;
  readonly slices?: NonNullable<Session["slices"]>;
  readonly verifies: boolean;
  readonly gpuLayers: NonNullable<Session["gpuLayers"]>;
  readonly #parts: SessionParts;
  readonly #limits: BatchLimits;
  /** True if a sequence may be divided into several chunks. */
  readonly #splits: boolean;
  readonly #inputs: RowInputs;
  readonly #chunks: ChunkRuns;
  /** Set if rows can have a memory. */
  readonly #memories: DeviceMemories | undefined;
  /** Set if the CPU computes some steps. */
  readonly #hostRuns: HostRuns | undefined;
  #results = new Float32Array(0);
  /** True while a run in parts keeps its activations in the pass for many rows. */
  #isDivided = false;
  #closed = false;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    const { name } = parts.device.facts;
    const isWider = parts.options.kvType === "q4_0" && parts.plan.cacheType.startsWith("q8_0");
    this.device = isWider ? `${name}, keys and values in 8 bits in place of 4` : name;
    this.lost = parts.device.lost;
    const { weights, kv, scratch: activations } = parts.plan.bytes;
    const scratch = activations + (parts.chooser?.bytes ?? 0);
    this.bytes = { weights, kv, scratch };
    this.vramBytes = parts.device.facts.software ? 0 : weights + kv + scratch;
    const count = layerCount(parts.program);
    this.gpuLayers = { count, all: count };
    const given = parts.program.steps.find(({ op }) => op === "input");
    this.#inputs = makeRowInputs(parts.device, parts.plan, given ? writtenBy(given).dim : 0);
    this.#splits = !runsWhole(parts.program.steps);
    const anyRows = this.#inputs.dim > 0 || parts.options.images !== undefined;
    this.#limits = batchLimits(parts.program, { ...parts.options, anyRows });
    this.#chunks = new ChunkRuns({
      ...parts,
      inputs: this.#inputs,
      ctxLen: parts.options.ctxLen,
      goesAhead: this.#limits.keeps && !parts.states && !parts.options.hostSteps && !given,
      faultOf: (...run) => this.#faultOf(...run),
      checkOpen: () => this.#checkOpen(),
    });
    const { remembering } = parts.plan;
    if (remembering) {
      const onWrite = (): void => this.#chunks.drop();
      this.#memories = makeMemories(parts, { remembering, checkOpen: () => this.#checkOpen(), onWrite });
    }
    const checkpoints = parts.states?.checkpoints;
    if (checkpoints) this.checkpoints = checkpoints;
    const { slots } = parts.options;
    if (this.#limits.keeps) {
      const onWrite = (): void => this.#chunks.drop();
      this.blocks = makeKvBlocks(parts.shift, { slots, checkpoints, reach: parts.plan.reach, onWrite });
    }
    this.verifies = this.#limits.keeps;
    const { hostSteps } = parts.options;
    const { host: buffers } = parts.plan;
    if (hostSteps && buffers) {
      const { device } = parts;
      this.#hostRuns = makeHostRuns({
        device,
        buffers,
        hostSteps,
        encode: encodeDispatches,
        checkOpen: () => this.#checkOpen(),
      });
    }
    if (parts.plan.isApart) {
      this.slices = makeSlices({
        rowsMax: parts.plan.capacity.all,
        gemvRows: GEMV_ROWS_MAX,
        run: (rows) => this.run(rows),
        upload: (rows) => this.#uploadDivided(rows),
        onDivided: (isDivided) => void (this.#isDivided = isDivided),
      });
    }
    this.held = parts.plan.held;
    if (!parts.chooser) return;
    this.topK = { limits: TOP_K_LIMITS, run: (batch) => this.#runTopK(batch) };
    this.runWithStates = (batch) => this.#runTopK(batch, true);
  }

  readonly run: Session["run"] = async (batch) => {
    assert(this.#parts.program.logits, "an encoder has no logits");
    const rows = batch.map(({ logits: states, ...each }) => ({ ...each, states }));
    return (await this.#run(rows, "logits")).values;
  };

  readonly states: Session["states"] = async (batch, pause) => (await this.#run(batch, "states", { pause })).values;

  async #runTopK(batch: readonly TopKRows[], keepsStates = false): Promise<RunWithStates> {
    for (const { request, logits, slot } of batch) {
      assert(!request || logits === "last", `slot ${slot}: candidates of ${logits} rows, expected the last`);
      if (request) checkRequest(request, this.#parts.program.logits!.dim); // a chooser exists
    }
    const rows = batch.map(({ logits: states, ...each }) => ({ ...each, states }));
    const { values, topK, states } = await this.#run(rows, "logits", { keepsStates });
    return { logits: values, topK, states };
  }

  async #run(
    batch: readonly WantedRows[],
    result: ResultName,
    { pause, keepsStates = false }: { pause?: (() => Promise<void>) | undefined; keepsStates?: boolean } = {},
  ): Promise<RunResult> {
    const { plan, program, states: kept } = this.#parts;
    if (plan.passes.adapted && isMixed(batch)) {
      const dims = { values: program[result]!.dim, states: keepsStates ? program.states.dim : 0 };
      return runApart(batch, dims, (part) => this.#run(part, result, { pause, keepsStates }));
    }
    const making = this.#prepare(batch);
    if (making) {
      await making;
      this.#checkOpen();
    }
    const { capacity } = plan;
    const gemvCapacity = this.#isDivided
      ? { ...capacity, all: GEMV_ROWS_MAX, wanted: Math.min(GEMV_ROWS_MAX, capacity.wanted) }
      : capacity;
    const chunks = this.#chunksOf(batch, gemvCapacity);
    this.#inputs.gather(batch);
    const dim = program[result]!.dim; // encoders were refused
    const wanted = chunks.reduce((sum, { requests }) => sum + requests.length, 0);
    const states = keepsStates ? new Float32Array(wanted * program.states.dim) : NONE;
    const size = dim * chunks.reduce((sum, chunk) => sum + wholeRows(chunk), 0);
    if (this.#results.length < size) this.#results = new Float32Array(size);
    const topK: TopK[] = [];
    const alone = chunks.length === 1 && !this.#isDivided;
    let [done, first, known] = [0, 0, 0];
    for (const chunk of chunks) {
      this.#inputs.give(first, chunk.rows.length);
      first += chunk.rows.length;
      const out = this.#results.subarray(done, done + dim * wholeRows(chunk));
      const until = known + chunk.requests.length * program.states.dim;
      const own = keepsStates ? states.subarray(known, until) : NONE;
      known = until;
      topK.push(...(await this.#runChunk(chunk, result, { out, states: own, pause, alone })));
      done += out.length;
    }
    kept?.lengths.ran(batch);
    return { values: this.#results.subarray(0, size), topK, states };
  }

  /** Checks a batch; makes room for its keys and values, and for its rotations; computes its memories. */
  #prepare(batch: readonly WantedRows[]): Promise<void> | undefined {
    assert(!this.#closed, "run of a closed session");
    checkBatch(batch, this.#limits);
    const { plan, device, states } = this.#parts;
    states?.lengths.check(batch);
    states?.lengths.failed(batch); // until the end
    const end = batch.reduce((most, rows) => Math.max(most, positionsEnd(rows)), 0);
    for (const rope of plan.ropes) reachRope(device, rope, end);
    const slots = 1 + batch.reduce((most, { slot }) => Math.max(most, slot), 0);
    const positions = batch.reduce((most, { start, tokens }) => Math.max(most, start + tokens.length), 0);
    const making = this.#limits.keeps ? plan.reach({ slots, positions }) : undefined;
    const memories = this.#memories;
    if (!memories || batch.every(({ memory }) => !memory)) return making;
    return Promise.resolve(making).then(() => memories.hold(batch));
  }

  #chunksOf(batch: readonly WantedRows[], capacity: Plan["capacity"]): Chunk[] {
    return chunksOf(batch, { capacity, splits: this.#splits, hasInput: this.#inputs.dim > 0, ...this.#limits });
  }

  async #uploadDivided({ logits: states, ...rest }: Rows): Promise<Uploaded> {
    const { plan, device } = this.#parts;
    const batch = [{ ...rest, states }];
    await this.#prepare(batch);
    this.#checkOpen();
    const [chunk, ...more] = this.#chunksOf(batch, plan.capacity);
    assert(chunk && more.length === 0 && states !== "all" && !chunk.twoWay, "a run that cannot be divided");
    this.#chunks.drop();
    const upload = this.#chunks.upload(chunk, "logits");
    const { pass, counts, end } = upload;
    /** Runs a part up to its last step of the CPU; returns the first dispatch after it. */
    const runStops = async (range: { first: number; end: number }): Promise<number> => {
      const onBad = () => this.#faultOf(pass, counts, false);
      return (await this.#hostRuns?.run({ pass, counts, ...range, drafted: false, onBad })) ?? range.first;
    };
    return {
      end,
      cutFrom: (at) => cutFrom(pass.stops, at),
      part: async (range, ms) => {
        this.#checkOpen();
        const first = await runStops(range);
        const encoder = device.gpu.createCommandEncoder();
        encodeDispatches(encoder, pass, counts, { first, end: range.end });
        device.submit(encoder.finish(), device.facts.software ? undefined : ms);
        await device.wait(() => device.gpu.queue.onSubmittedWorkDone());
        this.#checkOpen();
      },
      finish: async (from) => {
        this.#checkOpen();
        const first = await runStops({ first: from, end });
        const size = wholeRows(chunk) * this.#parts.program.logits!.dim; // only generating models have slices
        if (this.#results.length < size) this.#results = new Float32Array(size);
        const out = this.#results.subarray(0, size);
        await this.#chunks.finish(chunk, upload, { first, out, states: NONE });
        this.#parts.states?.lengths.ran(batch);
        return out;
      },
    };
  }

  async #runChunk(
    chunk: Chunk,
    name: ResultName,
    { pause, ...results }: Results & { alone: boolean; pause: (() => Promise<void>) | undefined },
  ): Promise<TopK[]> {
    assert(!(this.#isDivided && chunk.twoWay), "rows that see later ones beside a run in parts");
    const continued = this.#chunks.continued(chunk, name, results);
    if (continued) return continued;
    const step = this.#chunks.upload(chunk, name);
    const { pass, counts, end } = step;
    const isWhole = this.#splits && !this.#hostRuns;
    const earlier = { end, drafted: chunk.decodes, pause };
    const first = isWhole ? 0 : await this.#runEarlier(pass, counts, earlier);
    return this.#chunks.finish(chunk, step, { first, ...results });
  }

  /** Runs the first parts of a long run or of one with stops; returns the first dispatch after them. */
  async #runEarlier(
    pass: Pass,
    counts: Counts,
    { end, drafted, pause }: { end: number; drafted: boolean; pause: (() => Promise<void>) | undefined },
  ): Promise<number> {
    const { device } = this.#parts;
    const onBad = () => this.#faultOf(pass, counts, drafted);
    if (this.#hostRuns) return this.#hostRuns.run({ pass, counts, end, drafted, onBad });
    const { rows, dispatches } = LONG_RUN;
    let first = 0;
    for (; counts.all > rows && end - first > dispatches; first += dispatches) {
      const encoder = device.gpu.createCommandEncoder();
      encodeDispatches(encoder, pass, counts, { first, end: first + dispatches });
      device.submit(encoder.finish());
      await device.wait(() => device.gpu.queue.onSubmittedWorkDone());
      await pause?.();
      this.#checkOpen();
    }
    return first;
  }

  #faultOf(pass: Pass, counts: Counts, drafted: boolean): Promise<AppError> {
    const { device, program } = this.#parts;
    const runStop = (stop: Stop): Promise<void> | undefined => this.#hostRuns?.runAgain(stop, { counts, drafted });
    return findFault({ device, program, pass, counts, runStop });
  }

  #checkOpen(): void {
    if (this.#closed) throw new AppError("cancelled", "the model was closed while it ran");
  }

  readonly shift: Session["shift"] = (slot, { keep, discard, length }) => {
    const { ctxLen, slots } = this.#parts.options;
    assert(!this.#closed && slot >= 0 && slot < slots, `shift of slot ${slot} of ${slots}`);
    assert(keep >= 0 && discard >= 0, `shift of slot ${slot}: keep ${keep}, discard ${discard}`);
    assert(keep + discard <= length && length <= ctxLen, `shift of slot ${slot}: ${keep} + ${discard} of ${length}`);
    this.#chunks.drop();
    shiftTokens(this.#parts.shift, { slot, keep, discard, length });
    this.#parts.states?.lengths.set(slot, length - discard);
  };

  readonly copy: Session["copy"] = async ({ from, to, length }) => {
    const { ctxLen, slots } = this.#parts.options;
    assert(!this.#closed && from < slots && to < slots && length <= ctxLen, `copy of ${length} from ${from} to ${to}`);
    this.#chunks.drop();
    await this.#parts.plan.reach({ slots: to + 1, positions: length });
    this.#checkOpen();
    copyTokens(this.#parts.shift, { from, to, length });
  };

  readonly close: Session["close"] = () => {
    if (this.#closed) return;
    this.#closed = true;
    this.#chunks.drop();
    this.#parts.plan.destroy();
    this.#parts.shift.destroy();
    this.#parts.chooser?.destroy();
    this.#parts.states?.checkpoints.destroy();
  };
}
