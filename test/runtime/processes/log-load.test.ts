import { expect, test } from "bun:test";
import { logLoad } from "../../../src/runtime/processes/log-load.ts";

const FILE = import.meta.path; // any size will do
const { size } = Bun.file(FILE);

interface Loaded {
  readonly weights: number;
  readonly gpuLayers?: { count: number; all: number; cpuExperts?: number };
  readonly streamed?: { readonly memory: number };
  readonly samplersUnused?: readonly string[];
}

function linesOf({ weights, gpuLayers, streamed, samplersUnused = [] }: Loaded): unknown[] {
  const lines: unknown[] = [];
  const log = {
    info: (msg: string, fields?: object) => void lines.push([msg, fields]),
    warn: (msg: string, fields?: object) => void lines.push([msg, fields]),
  };
  const bytes = { weights, kv: 0, scratch: 0 };
  const info = { backend: "onnx", device: "d", bytes, vramBytes: 3, gpuLayers, ...(streamed && { streamed }) };
  logLoad(log, { ...info, samplersUnused }, { path: FILE });
  return lines;
}

test("the log warns of weights that take a multiple of their file, and names a split over two devices", () => {
  expect(linesOf({ weights: 2 * size })).toEqual([]);
  expect(linesOf({ weights: 4 * size })).toEqual([
    [
      expect.stringContaining("more memory than their file"),
      { file: FILE, backend: "onnx", times: 4, bytes: 4 * size },
    ],
  ]);
  expect(linesOf({ weights: size, gpuLayers: { count: 2, all: 9 } })).toEqual([
    ["some layers of a model are on the GPU, the others on the CPU", { file: FILE, device: "d", vramBytes: 3 }],
  ]);
  expect(linesOf({ weights: size, gpuLayers: { count: 9, all: 9, cpuExperts: 3 } })).toEqual([
    ["experts of a model are on the CPU, the rest is on the GPU", { file: FILE, device: "d", vramBytes: 3 }],
  ]);
  expect(linesOf({ weights: size, gpuLayers: { count: 9, all: 9 } })).toEqual([]);
});

test("the log warns of a model that does not fit in memory", () => {
  expect(linesOf({ weights: size, streamed: { memory: 7 } })).toEqual([
    [expect.stringContaining("does not fit in memory"), { file: FILE, memory: 7, bytes: size }],
  ]);
});

test("the log names samplers that a file recommends and Hearth lacks", () => {
  const keys = ["general.sampling.sequence"];
  expect(linesOf({ weights: size, samplersUnused: keys })).toEqual([
    ["a model's file recommends samplers that do not exist here", { file: FILE, keys }],
  ]);
});
