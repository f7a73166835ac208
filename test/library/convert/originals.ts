/** Models of the original implementations, recorded by bench/real/originals.ts, and their weights. */
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { addStates, poolingOf } from "../../../src/engine/batching/pooling.ts";
import { rankHeadOf } from "../../../src/engine/batching/rank-head.ts";
import { rowsOf } from "../../../src/engine/batching/second-text.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import { projectorGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import type { Backend, LoadOptions, Program, Session } from "../../../src/engine/program/backend.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { openAudioEncoder } from "../../../src/engine/hearing/index.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { makeModel } from "../../engine/architectures/models.ts";
import { byteTokenizer, encodeSafetensors, pack, writeFolder, type PlainTensor } from "./hugging-face.ts";
import { seenBy, type Picture } from "./pictures.ts";
import { hashed, valuesOf } from "./values.ts";

export const ORIGINALS = join(import.meta.dir, "originals.json.gz");
/** Rows of logits that are recorded, the last ones. */
export const ROWS = 2;

export interface Original {
  readonly config: Readonly<Record<string, unknown>>;
  readonly ids: readonly number[];
  readonly tensors: Readonly<Record<string, readonly [shape: readonly number[], middle: number, width: number]>>;
  /** Logits of the last rows, (`ROWS`, vocabulary) float32, in base64; final states of encoders; a reranker's score. */
  readonly last: string;
  /** The last rows of an encoder of recordings, as `last`. */
  readonly sound?: string;
  /** The original answered for the last of them. */
  readonly pictures?: readonly Picture[];
  /** For rerankers: the ids from here on are of the document. */
  readonly second?: number | undefined;
  /** For a model whose encoder reads a prompt: the prompt's ids. */
  readonly read?: readonly number[];
  /** The most likely answer to it, from the id that begins it. */
  readonly answer?: readonly number[];
}

type Asked = Pick<Original, "ids" | "second" | "pictures" | "read"> & { readonly hears?: boolean };

/** Logits of all rows, the states of an encoder, or the score of a reranker. */
export async function answerOf(
  path: string,
  { ids, second, read, pictures = [], hears = false }: Asked,
  backend: Backend,
): Promise<Float32Array> {
  const gguf = openGguf(path);
  const options = { ctxLen: 256, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const program = loadProgram(gguf);
  const session = await backend.load(program, options);
  const [picture] = await seenBy(backend, { gguf, program, pictures: pictures.slice(-1) });
  const memory =
    picture?.memory ??
    (hears ? await heardRows(gguf) : read && (await readRows(program, { ids: read, backend, options })));
  const tokens = Int32Array.from(ids);
  const rows = { slot: 0, start: 0, tokens, ...(memory && { memory: { id: "seen or heard", rows: memory } }) };
  try {
    if (second !== undefined) return Float32Array.of(await scoreOf(gguf, { program, session, second, ...rows }));
    const answer = program.logits
      ? await session.run([{ ...rows, logits: "all" }])
      : await session.states([{ ...rows, states: "all" }]);
    return answer.slice();
  } finally {
    session.close();
    gguf.close();
  }
}

/** The rows that a model's encoder makes of a prompt. */
export async function readRows(
  { reader }: Pick<Program, "reader">,
  { ids, backend, options }: { ids: readonly number[]; backend: Backend; options: LoadOptions },
): Promise<Float32Array> {
  const encoder = await backend.load(reader!.program, options); // its originals have one
  const rows = await encoder.states([{ slot: 0, start: 0, tokens: Int32Array.from(ids), states: "all" }]);
  encoder.close();
  return rows.slice();
}

const NMSE_MAX = 1e-6;
/** The exact GELU shows: its tanh form costs 1e-10 to 2e-7. */
const EXACT_NMSE_MAX = 1e-11;

/** The largest NMSE of an original, by its name. */
export const boundOf = (name: string): number =>
  /bert|JinaEmbeddings|^(Falcon|GPTNeoX|Mpt)\b/i.test(name) ? EXACT_NMSE_MAX : NMSE_MAX;

/** The squared error of one score, which may be near 0. */
export const scoreError = (got: number, expected: number): number => (got - expected) ** 2 / Math.max(1, expected ** 2);

interface Pair {
  readonly program: Program;
  readonly session: Session;
  readonly tokens: Int32Array;
  readonly second: number;
}

async function scoreOf(gguf: Gguf, { program, session, tokens, second }: Pair): Promise<number> {
  const { shape, states, logits } = program;
  const { dim } = states;
  const text = { id: 1, index: 0, tokens, ranks: true, second, adapters: [] };
  const head = rankHeadOf(gguf, { arch: shape.arch, dim, types: true })!; // the file ranks
  const given = rowsOf(text, head.secondText);
  const pooling = poolingOf(gguf, { arch: shape.arch, encoder: !logits });
  const wanted = pooling === "mean" ? "all" : pooling;
  const found = await session.states([{ slot: 0, start: 0, ...given, states: wanted }]);
  const sum = new Float64Array(dim);
  addStates(sum, found);
  return head.score(sum.map((value) => (value * dim) / found.length));
}

export async function readOriginals(): Promise<Readonly<Record<string, Original>>> {
  return JSON.parse(new TextDecoder().decode(Bun.gunzipSync(await Bun.file(ORIGINALS).bytes())));
}

const tokenizer = byteTokenizer(makeModel("llama").metadata);

/** Converts an original's folder to a GGUF in a folder, and returns its path. */
export async function convertOriginal(
  folder: string,
  { name, original, more = {} }: { name: string; original: Original; more?: Parameters<typeof writeFolder>[1] },
): Promise<string> {
  const source = await writeFolder(join(folder, name), {
    ...more,
    "config.json": original.config,
    "tokenizer.json": tokenizer,
    "model.safetensors": encodeSafetensors(tensorsOf(original)),
  });
  const to = join(folder, `${name}.gguf`);
  await convertModel({ folder: source, to });
  return to;
}

/** The tensors of a model's file; `weights` of bench/real/originals.py makes the same. */
export function tensorsOf({ tensors }: Original): Record<string, PlainTensor> {
  const all = Object.entries(tensors).map(([name, [shape, middle, width]]) => {
    const count = shape.reduce((product, size) => product * size, 1);
    if (name.endsWith(".tid2eid")) {
      const numbers = BigInt64Array.from({ length: count }, (_, i) => BigInt(hashed(Bun.hash.crc32(name) + i) % width));
      return [name, { dtype: "I64", shape, data: new Uint8Array(numbers.buffer) }] as const;
    }
    const values = valuesOf(name, count, { middle, width });
    return [name, { dtype: "F32", shape, data: pack(values, f32) }] as const;
  });
  return Object.fromEntries(all);
}

const [BINS, FRAMES] = [80, 3000];

/** The rows of a Whisper's encoder for the spectrogram that the original heard. */
export async function heardRows(gguf: Gguf): Promise<Float32Array> {
  const mel = valuesOf("features", BINS * FRAMES, { middle: 0, width: 1 });
  const values = mel.map((_, i) => mel[(i % BINS) * FRAMES + Math.floor(i / BINS)]!);
  const options = { backend: simdBackend, threads: 1, text: undefined }; // the reference takes a minute
  const encoder = await openAudioEncoder(projectorGguf(gguf)!, options);
  try {
    return await encoder.encodePiece({ values, batches: 1, time: FRAMES, bins: 1, channels: BINS }, async () => {});
  } finally {
    encoder.close();
  }
}
