/**
 * Selects top-k candidates on the device: uploads requests, replays the search after a run, and reads results. Made
 * once per plan; a run creates only its pass.
 */
import {
  ANSWER_WORDS,
  answerWords,
  maskStage,
  KEEPS,
  TOP_K_LIMITS,
  searchStages,
  UNUSABLE,
  REQUEST_WORDS,
  writeRequest,
  type SearchStage,
} from "../../../../kernels/wgsl/candidates.ts";
import { writeParams } from "../../../../kernels/wgsl/params.ts";
import { assert } from "../../../base/index.ts";
import { bitsOfRising } from "../../text/sampling/candidates.ts";
import type { TopK, TopKRequest } from "../../text/sampling/top-k.ts";
import type { Program } from "../../program/backend.ts";
import type { Device } from "./device.ts";
import { PARAMS_STRIDE } from "./memory.ts";
import { distinctPasses, type Pass, type Passes } from "./record.ts";
import { USAGE } from "./usage.ts";

/** A dispatch with everything bound: `groups` workgroups per row with a request. */
interface Bound {
  readonly pipeline: GPUComputePipeline;
  readonly bindings: GPUBindGroup;
  readonly groups: number;
}

/** The searches of one pass, whose logits are in a separate buffer. */
interface Way {
  readonly masked: Bound;
  /** One per entry of KEEPS. */
  readonly searches: readonly (readonly Bound[])[];
}

/** A wanted row that returns candidates only. */
export interface Asked {
  /** Its index among the wanted rows of its chunk. */
  readonly row: number;
  readonly request: TopKRequest;
}

export interface Chooser {
  /** Uploads the requests of some rows, at most as many as there are slots, and encodes the search after a pass. */
  encode(encoder: GPUCommandEncoder, pass: Pass, asked: readonly Asked[]): void;
  /** Offset of the `index`-th result, in bytes. */
  answerAt(index: number, request: TopKRequest): { buffer: GPUBuffer; offset: number; size: number };
  /** Bytes of all its buffers. */
  readonly bytes: number;
  destroy(): void;
}

/** Bytes of the buffers that `makeChooser` makes. */
export function chooserBytes(vocabSize: number, rows: number): number {
  return Object.values(sizesOf({ ...stagesOf(vocabSize), rows })).reduce((sum, size) => sum + size, 0);
}

function stagesOf(vocabSize: number): { searches: Searches; stages: Stages } {
  const searches = KEEPS.map((keep) => searchStages(vocabSize, keep));
  return { searches, stages: [maskStage(vocabSize), ...searches.flat()] };
}

/** Makes the chooser of a program with logits. @param rows maximum rows with requests in one run */
export async function makeChooser(
  device: Device,
  program: Program,
  { plan, rows }: { plan: { readonly passes: Passes }; rows: number },
): Promise<Chooser> {
  assert(program.logits, "candidates of a program without logits");
  const { searches, stages } = stagesOf(program.logits.dim);
  // first, because a refused kernel must not leave buffers
  await Promise.all(stages.map(({ kernel }) => device.pipeline(kernel)));
  const buffers = await makeBuffers(device, program, { searches, stages, rows });
  const ways = new Map<Pass, Way>();
  for (const pass of distinctPasses(plan.passes))
    ways.set(pass, await bindWay(device, pass, { searches, stages, buffers }));
  await device.flush(); // reports bind groups that the device refuses
  const words = new Uint32Array(REQUEST_WORDS * rows);
  const uploaded = new Uint32Array(words.length); // zeros at first, as on the device
  /** Uploads the first words, unless the device has them: the steps of an answer have the same request. */
  const upload = (count: number): void => {
    let i = 0;
    while (i < count && words[i] === uploaded[i]) i++;
    if (i === count) return;
    device.gpu.queue.writeBuffer(buffers.requests, 0, words, 0, count);
    uploaded.set(words.subarray(0, count));
  };
  return {
    encode(encoder, pass, asked) {
      assert(asked.length <= rows, `${asked.length} rows with a request, expected at most ${rows}`);
      let k = 0;
      let anyMasked = false;
      for (let i = 0; i < asked.length; i++) {
        const { row, request } = asked[i]!;
        writeRequest(words, i, { row, request });
        k = Math.max(k, request.k);
        anyMasked ||= request.masked.length > 0;
      }
      upload(REQUEST_WORDS * asked.length);
      const { masked, searches: bound } = ways.get(pass)!; // every pass has one
      const found = bound[KEEPS.findIndex((keep) => keep >= k)]!; // requests were checked
      search(encoder, anyMasked ? [masked, ...found] : found, asked.length);
    },
    answerAt(index, request) {
      const { first, count } = answerWords(index, request);
      return { buffer: buffers.answers, offset: 4 * first, size: 4 * count };
    },
    bytes: Object.values(buffers).reduce((sum, { size }) => sum + size, 0),
    destroy: () => Object.values(buffers).forEach((buffer) => buffer.destroy()),
  };
}

function search(encoder: GPUCommandEncoder, steps: readonly Bound[], rows: number): void {
  const pass = encoder.beginComputePass();
  for (const { pipeline, bindings, groups } of steps) {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindings);
    pass.dispatchWorkgroups(groups, rows);
  }
  pass.end();
}

type Stages = readonly Omit<SearchStage, "listWords">[];
type Searches = readonly (readonly SearchStage[])[];
type Buffers = Record<"requests" | "answers" | "even" | "odd" | "params", GPUBuffer>;

/** Lists alternate between the two buffers. */
function sizesOf(parts: { searches: Searches; stages: Stages; rows: number }): Record<keyof Buffers, number> {
  const { searches, stages, rows } = parts;
  const listBytes = (parity: number): number => {
    const lists = searches.flatMap((each) => each.filter((_, i) => i % 2 === parity && i < each.length - 1));
    return 4 * rows * Math.max(2, ...lists.map(({ listWords }) => listWords));
  };
  return {
    requests: 4 * REQUEST_WORDS * rows,
    answers: 4 * ANSWER_WORDS * rows,
    even: listBytes(0),
    odd: listBytes(1),
    params: PARAMS_STRIDE * stages.length,
  };
}

async function makeBuffers(
  device: Device,
  { weights }: Program,
  { searches, stages, rows }: { searches: Searches; stages: Stages; rows: number },
): Promise<Buffers> {
  const { storage, copySrc, copyDst, uniform } = USAGE;
  const sizes = sizesOf({ searches, stages, rows });
  const make = (label: string, size: number, usage: number): GPUBuffer =>
    device.gpu.createBuffer({ label, size, usage });
  const made = await device.allocate(`${weights.path}: candidates`, () => [
    make("requests", sizes.requests, storage | copyDst),
    make("answers", sizes.answers, storage | copySrc),
    make("lists", sizes.even, storage),
    make("lists", sizes.odd, storage),
    make("search parameters", sizes.params, uniform | copyDst),
  ]);
  type Made = [GPUBuffer, GPUBuffer, GPUBuffer, GPUBuffer, GPUBuffer];
  const [requests, answers, even, odd, params] = made as Made; // one per requested buffer
  const view = new DataView(new ArrayBuffer(PARAMS_STRIDE * stages.length));
  for (const [i, stage] of stages.entries()) writeParams(view, i * PARAMS_STRIDE, stage);
  device.gpu.queue.writeBuffer(params, 0, view.buffer);
  return { requests, answers, even, odd, params };
}

async function bindWay(
  device: Device,
  pass: Pass,
  { searches, stages, buffers }: { searches: Searches; stages: Stages; buffers: Buffers },
): Promise<Way> {
  const { requests, answers, even, odd, params } = buffers;
  const logits = pass.logits!.buffer; // the program has logits
  const bind = async (stage: Stages[number], ...resources: GPUBuffer[]): Promise<Bound> => {
    const pipeline = await device.pipeline(stage.kernel);
    const entries: GPUBindGroupEntry[] = resources.map((buffer, binding) => ({ binding, resource: { buffer } }));
    const resource = { buffer: params, offset: stages.indexOf(stage) * PARAMS_STRIDE, size: PARAMS_STRIDE };
    entries.push({ binding: resources.length, resource });
    const bindings = device.gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    return { pipeline, bindings, groups: stage.groups };
  };
  const bound: Bound[][] = [];
  for (const search of searches) {
    const steps: Bound[] = [];
    for (const [i, stage] of search.entries()) {
      const [from, to] = i % 2 === 0 ? [odd, even] : [even, odd];
      const out = i === search.length - 1 ? answers : to;
      steps.push(await (i === 0 ? bind(stage, logits, requests, out) : bind(stage, from, out)));
    }
    bound.push(steps);
  }
  return { masked: await bind(stages[0]!, logits, requests, answers), searches: bound };
}

/** The result of a row; undefined if the row had a NaN or infinite logit. */
export function readAnswer(words: Uint32Array, { k, masked }: TopKRequest): TopK | undefined {
  const logits = new Float32Array(masked.length + k);
  const ids = new Int32Array(masked.length + k);
  const bits = new Int32Array(logits.buffer);
  let n = 0;
  for (; n < masked.length; n++) {
    bits[n] = words[n]!;
    ids[n] = masked[n]!;
    if (!Number.isFinite(logits[n]!)) return undefined;
  }
  for (let at = n; at < words.length && words[at] !== 0; at += 2, n++) {
    if (words[at] === UNUSABLE) return undefined;
    bits[n] = bitsOfRising(words[at]!);
    ids[n] = words[at + 1]!;
  }
  return { ids: ids.subarray(0, n), logits: logits.subarray(0, n) };
}

/** Throws if the kernels cannot fulfil a request. */
export function checkRequest({ k, masked }: TopKRequest, vocabSize: number): void {
  assert(k >= 1 && k <= TOP_K_LIMITS.k, `${k} candidates, expected 1 to ${TOP_K_LIMITS.k}`);
  assert(
    masked.length <= TOP_K_LIMITS.masked,
    `${masked.length} masked tokens, expected at most ${TOP_K_LIMITS.masked}`,
  );
  for (const id of masked) assert(id >= 0 && id < vocabSize, `token ${id}: expected an id of 0 … ${vocabSize - 1}`);
}
