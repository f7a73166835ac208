/** Run by smallest.test.ts with a GPU driver in its environment: cases on a device with WebGPU's least limits. */
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { webGpuBackend } from "../../../../src/engine/backends/host/webgpu.ts";
import { openDevice } from "../../../../src/engine/backends/webgpu/device.ts";
import { messageOf } from "../../../../src/base/errors.ts";
import type { Rows, SlotBytes } from "../../../../src/engine/program/backend.ts";
import { runCase, type Case } from "../../../conformance/cases.ts";
import { attention, gatedMlp, makeCase, moe, rows } from "../../../conformance/draft.ts";
import { memoryCase, memoryOf } from "../../../conformance/memory-cases.ts";
import { choiceOfRun, runnableCases } from "./chosen-cases.ts";

export interface Smallest {
  readonly limits: Readonly<Record<string, number>>;
  /** By case, the largest difference relative to its tolerance. */
  readonly differences: Readonly<Record<string, number>>;
  /** The message for runs of more rows than a uniform buffer describes. */
  readonly refused: string;
  /** Tokens that a cache of 1,024 float32 values a side can have. */
  readonly tokensMax: number | undefined;
  /** Memories as large as an image of Llama 3.2 Vision: their bytes for a slot, and the number of slots. */
  readonly memories: Pick<SlotBytes, "once" | "slotsMax">;
  /** The message for one slot more. */
  readonly memoriesRefused: string;
}

/** WebGPU, § 3.6.2: default limits, which every device has. */
const limits = {
  maxBufferSize: 2 ** 28,
  maxStorageBufferBindingSize: 2 ** 27,
  maxStorageBuffersPerShaderStage: 8,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupStorageSize: 16_384,
  maxComputeWorkgroupsPerDimension: 65_535,
};
const { gpu, facts } = await openDevice(dawn(), { limits });
const NAMES = [
  "rope: heads of 80, normed over each head",
  "attention: 4 heads on 4 of 16",
  "attention: sinks",
  "moe: 2 of 4, normalized",
  "gatedMlp: q4_K",
  "linear: three parts of a fused tensor, q6_K",
  "deltaRule: a decay of each channel",
  "wkv: every feature",
];

const all = runnableCases();
const caseOf = (name: string): Case => all.find((each) => each.name === name)!;
const block = makeCase("a block with experts", { dim: 32 }, (draft) => {
  const out = attention(draft, { nHeads: 2, nKvHeads: 2, headDim: 16 });
  const dense = gatedMlp({ ...draft, x: out }, { dim: 32, ffnDim: 48, act: "silu" });
  return moe({ ...draft, x: dense }, { experts: 4, nUsed: 2, normalize: true, scale: 1 });
});

const differences: Record<string, number> = {};
/** The largest difference of a case relative to its tolerance. */
async function largestOf(each: Case): Promise<number> {
  const got = await runCase(webGpuBackend, each);
  const expected = await runCase(cpuBackend, each);
  const { abs, rel } = each.tolerance;
  const excess = got.flatMap((run, i) =>
    [...run].map((v, j) => Math.abs(v - expected[i]![j]!) / (abs + rel * Math.abs(expected[i]![j]!))),
  );
  return excess.reduce((most, value) => Math.max(most, value), 0);
}
for (const each of choiceOfRun() === "all" ? [...all, block] : [...NAMES.map(caseOf), block])
  differences[each.name] = await largestOf(each);
const { program: recurrent } = caseOf("wkv: every feature");
const images = { twoWayRows: 1366 };
const tooMany = { ctxLen: 2048, slots: 1, precise: true, threads: 1, cacheDir: undefined, images };
const refused = await webGpuBackend.load(recurrent, tooMany).then(() => "ran", messageOf);
const wide = makeCase("a wide cache", { dim: 32 }, (draft) =>
  attention(draft, { nHeads: 8, nKvHeads: 8, headDim: 128 }),
);
/** Images of four tiles of 1,601 rows. */
const imagesOf = (nKvHeads: number): Case =>
  memoryCase("images", { heads: { nHeads: 4 * nKvHeads, nKvHeads, headDim: 128 }, rowsMax: 6404 });
const seeing = imagesOf(8);
const memory = memoryOf("image", 6404);
const rowsOf = (slot: number, count: number): Rows => ({ ...rows(slot, 0, count, "last"), memory });
differences["images of 6,404 rows"] = await largestOf({ ...imagesOf(1), batches: [[rowsOf(0, 2)], [rowsOf(1, 34)]] });
const { once, slotsMax } = await webGpuBackend.slotBytes!(seeing.program, { precise: false });
const { images: _images, ...more } = { ...tooMany, slots: slotsMax! + 1, precise: false };
const memoriesRefused = await webGpuBackend.load(seeing.program, more).then(() => "ran", messageOf);
const { tokensMax } = await webGpuBackend.slotBytes!(wide.program, { precise: true });
const asked = Object.fromEntries(
  Object.keys(limits).map((name) => [name, gpu.limits[name as keyof typeof facts.limits]]),
);
const memories = { once, ...(slotsMax !== undefined && { slotsMax }) };
const found = { limits: asked, differences, refused, tokensMax, memories, memoriesRefused };
console.log(JSON.stringify(found satisfies Smallest));
process.exit(0); // a driver's threads may remain
