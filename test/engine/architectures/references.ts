/**
 * Reference models with llama.cpp's logits: `archs` and `real` in its own layout, `twins` in the alternative layout of
 * files in circulation, and our answers to compare.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Backend } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { addStates, poolingOf, type Pooling } from "../../../src/engine/batching/pooling.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import { repairGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import { golden, hasGolden } from "../../golden.ts";
import { likeLlamaCpp } from "./like-llama-cpp.ts";

export interface Reference {
  readonly name: string;
  readonly gguf: string;
  readonly logits: string;
  readonly tokens: Int32Array;
  readonly nmseMax: number;
}

const ids = (count: number, id: (i: number) => number): Int32Array =>
  Int32Array.from({ length: count }, (_, i) => id(i));
const TOKENS = ids(32, (i) => (i * 37 + 11) % 128);
const REAL_TOKENS = ids(24, (i) => (i * 7 + 3) % 60);
/** Random weights of 4 and 8 bits, which llama.cpp multiplies with activations of 8 bits. */
const QUANTIZED = /gptoss|gpt_oss|gpt-oss/;
const NMSE_MAX = 1e-5;
/** `LLAMA_POOLING_TYPE_RANK` */
const RANK = 4;
const QUANTIZED_NMSE_MAX = 5e-4;
/**
 * llama.cpp looks up the factors of its matrices by the number of the run, not of the layer; real files have no
 * factors.
 */
const OTHER_FACTORS = "archs/hrm_text-dense";
const OTHER_FACTORS_NMSE_MAX = 1e-3;

/** Unreal models, and our errors for them: llama.cpp runs this one without its experts. */
export const REFUSED: Readonly<Record<string, string>> = { "archs/refact-moe": "'refact.expert_count': expected" };

/** @param more a folder of more models like those in `archs` */
export const referencesWith = (more: string | undefined): Reference[] => [
  ...(hasGolden ? [...inFolder(golden("archs"), TOKENS), ...inFolder(golden("real"), REAL_TOKENS), ...twins()] : []),
  ...(more ? inFolder(more, TOKENS) : []),
];

/** Every NAME.gguf with a NAME.f32. */
function inFolder(folder: string, tokens: Int32Array): Reference[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".gguf") && existsSync(logitsOf(folder, name)));
  return names.map((file) => {
    const name = `${basename(folder)}/${file.slice(0, -5)}`;
    return { name, gguf: join(folder, file), logits: logitsOf(folder, file), tokens, nmseMax: boundOf(name) };
  });
}

function boundOf(name: string): number {
  if (name === OTHER_FACTORS) return OTHER_FACTORS_NMSE_MAX;
  return QUANTIZED.test(name) ? QUANTIZED_NMSE_MAX : NMSE_MAX;
}

function logitsOf(folder: string, file: string): string {
  return join(folder, `${file.slice(0, -5)}.f32`);
}

function twins(): Reference[] {
  const { files } = JSON.parse(readFileSync(golden("twins/index.json"), "utf8")) as {
    files: { family: string; ollama: string; expected: string; suggestedMaxNmse: number }[];
  };
  return files.map(({ family, ollama, expected, suggestedMaxNmse }) => ({
    name: `twins/${family}`,
    gguf: golden(join("twins", ollama)),
    logits: golden(join("twins", expected)),
    tokens: REAL_TOKENS,
    nmseMax: suggestedMaxNmse,
  }));
}

/** The file in llama.cpp's layout, and its architecture. */
export function openReference({ gguf }: Reference): { readonly model: Gguf; readonly arch: string } {
  const model = repairGguf(openGguf(gguf));
  return { model, arch: String(model.metadata.get("general.architecture")) };
}

/** Rerankers have no logits here. */
export const isRanker = ({ metadata }: Gguf, arch: string): boolean =>
  /bert/.test(arch) && Number(metadata.get(`${arch}.pooling_type`)) === RANK;

/** The program of a reference model, the reference backend's answer, and llama.cpp's. */
export const answerOf = (reference: Reference, opened: ReturnType<typeof openReference>) =>
  answerOn({ backend: cpuBackend, precise: true }, reference, opened);

/** The same on another backend. */
export async function answerOn(
  { backend, precise }: { readonly backend: Backend; readonly precise: boolean },
  { logits, tokens }: Reference,
  { model, arch }: ReturnType<typeof openReference>,
) {
  const options = { ctxLen: 64, slots: 1, precise, threads: 1, cacheDir: undefined };
  const program = likeLlamaCpp(loadProgram(model));
  const session = await backend.load(program, options);
  const expected = new Float32Array(await Bun.file(logits).arrayBuffer());
  const rows = { slot: 0, start: 0, tokens };
  const { dim } = program.states;
  const got =
    expected.length === dim
      ? pool(
          await session.states([{ ...rows, states: "all" }]),
          poolingOf(model, { arch, encoder: !program.logits }),
          dim,
        )
      : await session.run([{ ...rows, logits: "all" }]);
  // some references have only the last rows
  const answer = { program, got: got.slice(-expected.length), expected };
  session.close();
  return answer;
}

/** Not normalised. */
function pool(states: Float32Array, pooling: Pooling, dim: number): Float32Array {
  if (pooling === "first") return states.slice(0, dim);
  if (pooling === "last") return states.slice(-dim);
  const sum = new Float64Array(dim);
  addStates(sum, states);
  return Float32Array.from(sum, (value) => (value * dim) / states.length);
}
