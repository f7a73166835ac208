/** Runs chunks of rows: uploads the rows, submits the dispatches, and reads the results. */
import { asRemembered, batchWords, writeBatch, type BatchRow } from "../../../../kernels/wgsl/batch.ts";
import { splitsOf } from "../../../../kernels/wgsl/splits.ts";
import type { AppError } from "../../../base/index.ts";
import type { TopK } from "../../text/sampling/top-k.ts";
import type { Chooser } from "./chooser.ts";
import { uploadChosen } from "./chosen-rows.ts";
import { longestOf, type Chunk } from "./chunks.ts";
import type { Device } from "./device.ts";
import { reachRope } from "./memory.ts";
import { makeNextStep, type NextStep, type StepCommands } from "./next-step.ts";
import { makeDurations } from "./device-polling.ts";
import { passFor, type Plan } from "./plan.ts";
import { allFinite, copyParts, mapResults, partsOf, readParts, type Part } from "./readback.ts";
import { encodeDispatches, type Counts, type Pass } from "./record.ts";
import type { RowInputs } from "./row-inputs.ts";
import { copyChosen, followingRows, isChosen, makeStepsAhead } from "./steps-ahead.ts";

export type ResultName = "logits" | "states";

/** Receives the logits of wanted rows without a request, and the states of all wanted rows; empty if unwanted. */
export interface Results {
  readonly out: Float32Array;
  readonly states: Float32Array;
}

/** The dispatches of a chunk whose rows are on the device, and what they compute. */
export interface UploadedChunk extends StepCommands {
  readonly name: ResultName;
}

interface Beside {
  /** True if there are no other chunks in the run, and no run in parts at the same time. */
  readonly alone: boolean;
}

/** A chunk whose results are on their way to `readback`. */
interface Running {
  readonly step: UploadedChunk;
  readonly parts: readonly Part[];
  /** Bytes of the parts. */
  readonly size: number;
  readonly readback: GPUBuffer;
  /** False if a part of the dispatches ran before: then the duration does not predict others. */
  readonly isWhole: boolean;
  /** The time at which the device began. */
  startedMs: number;
}

export interface ChunkRunParts {
  readonly device: Device;
  readonly plan: Plan;
  readonly chooser: Chooser | undefined;
  readonly inputs: RowInputs;
  /** True if steps may be submitted before the last one is read, and then be dropped. */
  readonly goesAhead: boolean;
  readonly ctxLen: number;
  /** Finds the first dispatch whose result is NaN or infinite. */
  faultOf(pass: Pass, counts: Counts, drafted: boolean): Promise<AppError>;
  /** Throws once the session is closed. */
  checkOpen(): void;
}

type Reading = Results & { readonly goesOn: boolean };

export class ChunkRuns {
  readonly #parts: ChunkRunParts;
  readonly #words: Uint32Array<ArrayBuffer>;
  /** Mean durations of runs, by their number of rows. */
  readonly #durations = makeDurations<number>();
  readonly #next: NextStep;
  readonly #ahead = makeStepsAhead<Running>();

  constructor(parts: ChunkRunParts) {
    this.#parts = parts;
    this.#words = new Uint32Array(batchWords(parts.plan.capacity.all));
    this.#next = makeNextStep(parts.device.gpu);
  }

  /** Uploads the rows of a chunk; returns the dispatches that compute its result. */
  upload(chunk: Chunk, name: ResultName): UploadedChunk {
    const { rows, requests, given } = chunk;
    const { plan, inputs } = this.#parts;
    const pass = passFor(plan, chunk);
    inputs.giveVectors(chunk);
    const sequences = this.#writeRows(rows, pass);
    const counts = {
      all: rows.length,
      wanted: requests.length,
      given,
      sequences,
      splits: splitsOf(longestOf(rows)),
      memorySplits: splitsOf(rows.reduce((most, { remembered }) => Math.max(most, remembered), 0)),
      forgotten: rows.reduce((sum, { remembered }) => sum + (remembered > 0 ? 0 : 1), 0),
    };
    return { pass, counts, end: pass[name]!.end, name }; // encoders were refused
  }

  /** Runs the dispatches of an uploaded chunk from `first` on, and reads its result. */
  finish(chunk: Chunk, step: UploadedChunk, how: Results & Partial<Beside> & { first: number }): Promise<TopK[]> {
    const { first, out, states } = how;
    const running = this.#submit(chunk, step, { first, stateBytes: states.byteLength });
    return this.#read(chunk, running, {
      out,
      states,
      goesOn: first === 0 && this.#goesOn(chunk, step.name, how),
    });
  }

  /**
   * Reads the result of a chunk that already runs, because it continues the last one; undefined: it does not run. Drops
   * all other steps that were submitted ahead.
   */
  continued(chunk: Chunk, name: ResultName, how: Results & Beside): Promise<TopK[]> | undefined {
    const running = this.#ahead.take(this.#goesOn(chunk, name, how) ? chunk : undefined);
    if (!running) return undefined;
    const expected = this.#expectedMs(running.step);
    this.#parts.device.expect(expected && Math.max(0, expected - (performance.now() - running.startedMs)));
    return this.#read(chunk, running, { ...how, goesOn: true });
  }

  /** Drops steps that were encoded or submitted ahead. */
  drop(): void {
    this.#next.drop();
    this.#ahead.take(undefined);
  }

  /** Returns whether the device can continue a chunk without the host. */
  #goesOn(chunk: Chunk, name: ResultName, { states, alone = false }: Results & Partial<Beside>): boolean {
    return this.#parts.goesAhead && alone && name === "logits" && states.length === 0 && isChosen(chunk);
  }

  /** Returns the number of sequences. */
  #writeRows(rows: readonly BatchRow[], { batch, memoryBatch, chosen }: Pass): number {
    const write = (buffer: GPUBuffer, which: readonly BatchRow[]): number => {
      const sequences = writeBatch(which, this.#words);
      this.#parts.device.gpu.queue.writeBuffer(buffer, 0, this.#words, 0, batchWords(rows.length));
      return sequences;
    };
    if (memoryBatch) write(memoryBatch, asRemembered(rows));
    if (chosen) uploadChosen(this.#parts.device.gpu, chosen, rows);
    return write(batch, rows);
  }

  /** The expected duration of a step; undefined for a software adapter, which needs the cores itself. */
  #expectedMs({ counts }: StepCommands): number | undefined {
    return this.#parts.device.facts.software ? undefined : this.#durations.expected(counts.all);
  }

  #submit(chunk: Chunk, step: UploadedChunk, { first, stateBytes }: { first: number; stateBytes: number }): Running {
    const { pass, counts, end } = step;
    const { device, chooser, plan } = this.#parts;
    const { readback } = plan;
    const startedMs = performance.now();
    const commands = first === 0 ? this.#next.take(step) : [];
    if (commands.length > 1) device.submit(commands[0]!); // starts it while the other commands are submitted
    const encoder = device.gpu.createCommandEncoder();
    if (first > 0) encodeDispatches(encoder, pass, counts, { first, end });
    const parts = partsOf(chunk.requests, { result: pass[step.name]!, chooser }); // these requests were uploaded
    if (stateBytes > 0) parts.push({ ...pass.states, offset: 0, size: stateBytes, request: undefined });
    const size = this.#encodeResults(encoder, chunk, { pass, parts, readback });
    device.submit([...commands.slice(-1), encoder.finish()], this.#expectedMs(step));
    return { step, parts, size, readback, isWhole: first === 0, startedMs };
  }

  /** Chooses candidates, and copies the results; returns their bytes. */
  #encodeResults(
    encoder: GPUCommandEncoder,
    { requests }: Chunk,
    { pass, parts, readback }: { pass: Pass; parts: readonly Part[]; readback: GPUBuffer },
  ): number {
    const asked = requests.flatMap((request, row) => (request ? [{ row, request }] : []));
    if (asked.length > 0) this.#parts.chooser!.encode(encoder, pass, asked); // else no request is accepted
    return copyParts(encoder, parts, readback);
  }

  /** Submits the step that continues a running one; undefined without room for it. */
  #submitNext(chunk: Chunk, running: Running): Running | undefined {
    const { device, plan, ctxLen } = this.#parts;
    const rows = followingRows(chunk.rows);
    const positions = longestOf(rows);
    const end = 1 + Math.max(...rows.flatMap(({ position }) => position));
    const slots = 1 + Math.max(...rows.map(({ slot }) => slot));
    if (Math.max(positions, end) > ctxLen || !plan.has({ slots, positions })) return undefined;
    for (const rope of plan.ropes) reachRope(device, rope, end);
    const { parts } = running;
    const step = stepAfter(chunk, running.step);
    const { pass, counts } = step;
    this.#writeRows(rows, pass);
    const readback = running.readback === plan.readback ? plan.readbackAhead : plan.readback;
    const encoder = device.gpu.createCommandEncoder();
    copyChosen(encoder, parts, pass.batch);
    encodeDispatches(encoder, pass, counts, { first: 0, end: step.end });
    const size = this.#encodeResults(encoder, chunk, { pass, parts, readback });
    device.gpu.queue.submit([encoder.finish()]);
    return { step, parts, size, readback, isWhole: true, startedMs: NaN };
  }

  async #read(chunk: Chunk, running: Running, { out, states, goesOn }: Reading): Promise<TopK[]> {
    const { step, parts, size, readback, isWhole } = running;
    const { pass, counts } = step;
    const { device, checkOpen, faultOf } = this.#parts;
    if (size === 0) {
      await device.wait(() => device.gpu.queue.onSubmittedWorkDone());
      checkOpen();
      return [];
    }
    const mapped = mapResults(this.#parts, readback, size);
    const later = goesOn && this.#ahead.isSteady ? this.#submitNext(chunk, running) : undefined;
    if (!later && chunk.decodes && isWhole) this.#next.prepare(stepAfter(chunk, step));
    await mapped;
    const now = performance.now();
    if (isWhole) this.#durations.took(counts.all, now - running.startedMs);
    const topK = readParts(readback.getMappedRange(0, size), parts, [out, states]);
    readback.unmap();
    if (!topK || !allFinite(out)) {
      if (later) this.#writeRows(chunk.rows, pass);
      throw await faultOf(pass, counts, chunk.decodes);
    }
    if (later) later.startedMs = now;
    if (goesOn) this.#ahead.expect(chunk, topK, later);
    return topK;
  }
}

/** The step that is likely to follow: each row sees one more position. */
const stepAfter = ({ rows }: Chunk, step: UploadedChunk): UploadedChunk => {
  return { ...step, counts: { ...step.counts, splits: splitsOf(1 + longestOf(rows)) } };
};
