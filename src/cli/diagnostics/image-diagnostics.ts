/**
 * `hearth image` and `hearth logits --image`: the stages of an image's processing, to compare with other
 * implementations. Raw float32 in files, shapes and sequences as JSON.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { loadProgram } from "../../engine/architectures/index.ts";
import { chooseBackend } from "../../engine/backends/index.ts";
import { AppError } from "../../base/index.ts";
import type { Backend, Media, PromptSegment } from "../../engine/index.ts";
import { inputOf, layOut, loadOptionsFor } from "../../engine/portable.ts";
import { type Gguf, openGguf, projectorGguf, repairGguf } from "../../engine/formats/index.ts";
import { loadTokenizer, type Tokenizer } from "../../engine/text/index.ts";
import { decodeImage, type ImagePart, type ImageRows, openImageEncoder, twoWayRowsOf } from "../../engine/media.ts";

/** Stands for the image in a text. */
const MARKER = "<__media__>";

interface ImageRun {
  readonly projector: string;
  readonly image: string;
  readonly backend: string;
  readonly threads: number;
  /** Level of the CPU kernels; undefined: the machine's best. */
  readonly simdLevel?: string | undefined;
}

/** A part of a prompt in the output: with one position per row, or three. */
type Chunk =
  | {
      readonly type: "text";
      readonly tokens: readonly number[];
      readonly pieces: readonly string[];
      readonly pos: readonly number[];
    }
  | {
      readonly type: "image";
      readonly n_tokens: number;
      readonly n_pos: number;
      readonly non_causal: boolean;
      readonly pos?: readonly number[];
      readonly pos_sections?: Readonly<Record<"t" | "y" | "x", readonly number[]>>;
    };

/** Writes an encoder's input and output, and returns their shapes. */
export async function writeImage(options: ImageRun & { pixels?: string; embeddings?: string }): Promise<object> {
  const image = await decodeImage(readFileSync(options.image));
  const file = openGguf(options.projector);
  const gguf = projectorGguf(file) ?? file; // its error names the missing part
  try {
    const backend = await encoderBackend(options);
    const encoder = await openImageEncoder(gguf, { ...options, backend, text: undefined });
    try {
      const pictures = encoder.pixels(image);
      if (options.pixels !== undefined)
        writeFloats(
          options.pixels,
          pictures.map(({ values }) => values),
        );
      const parts = options.embeddings === undefined ? encoder.layout(image) : await encoder.encode(image);
      const vectors = parts.flatMap((part) => ("vectors" in part ? [part.memory ?? part.vectors] : []));
      if (options.embeddings !== undefined) writeFloats(options.embeddings, vectors);
      const values = vectors.reduce((sum, { length }) => sum + length, 0);
      const laidOut = parts.reduce((sum, part) => sum + (part.kind === "rows" ? part.rows : 0), 0);
      const rows = options.embeddings === undefined ? laidOut : values / encoder.dim;
      return {
        image: { width: image.width, height: image.height },
        pixels: pictures.map(({ width, height }) => [3, height, width]),
        embeddings: [rows, encoder.dim],
        parts: parts.map((part) => (part.kind === "marker" ? part.text : part.rows)),
      };
    } finally {
      encoder.close();
    }
  } finally {
    file.close();
  }
}

/** Encodes on the CPU, whatever runs the model. */
const encoderBackend = ({ backend }: ImageRun): Promise<Backend> => chooseBackend(backend, { layers: 0 });

/** Writes the logits of the last position of a text with an image in it, and returns the parts of the prompt. */
export async function writeImageLogits(
  options: ImageRun & { model: string; text: string; out: string; precise: boolean },
): Promise<readonly Chunk[]> {
  const image = await decodeImage(readFileSync(options.image));
  const files: Gguf[] = [];
  const open = (path: string): Gguf => {
    const file = openGguf(path);
    files.push(file);
    return file;
  };
  try {
    const gguf = repairGguf(open(options.model));
    const program = loadProgram(gguf);
    const tokenizer = loadTokenizer(gguf.metadata, options.model);
    const backend = await chooseBackend(options.backend);
    const file = open(options.projector);
    const projector = projectorGguf(file) ?? file;
    const encoding = { ...options, backend: await encoderBackend(options), text: program };
    const encoder = await openImageEncoder(projector, encoding);
    const parts = await encoder.encode(image).finally(() => encoder.close());
    if (parts.some((part) => part.kind === "rows" && part.memory)) {
      const expected = "expected a model that reads an image's rows, got one that attends to them";
      throw new AppError("unsupported", `${options.model}: ${expected}`);
    }
    const prompt = promptOf(options.text, parts, tokenizer);
    const { keys, media } = layOut(prompt);
    const session = await backend.load(
      program,
      loadOptionsFor(program, {
        ctxLen: keys.length,
        images: { twoWayRows: twoWayRowsOf(projector) },
        slots: 1,
        precise: options.precise,
        threads: options.threads,
        simdLevel: options.simdLevel,
        cacheDir: undefined,
      }),
    );
    try {
      const input = inputOf({ tokens: keys, media }, { start: 0, end: keys.length });
      writeFloats(options.out, [await session.run([{ slot: 0, start: 0, ...input, logits: "last" }])]);
      return chunksOf(prompt, input.positions, tokenizer);
    } finally {
      session.close();
    }
  } finally {
    for (const file of files) file.close();
  }
}

/**
 * A text with an image in place of its marker: texts and control tokens are encoded separately, like in llama.cpp's
 * tools, after the model's own prefix.
 */
export function promptOf(
  text: string,
  image: readonly ImagePart<ImageRows>[],
  tokenizer: Tokenizer,
): readonly PromptSegment[] {
  const [before, after, more] = text.split(MARKER);
  if (after === undefined || more !== undefined) {
    throw new AppError("bad_request", `--text: expected ${MARKER} once, got '${text.slice(0, 200)}'`);
  }
  const encode = (part: string): number[] => [...tokenizer.encode(part, { addSpecial: false, parseSpecial: true })];
  const segments: PromptSegment[] = [];
  let ids = tokenizer.before === undefined ? [] : [tokenizer.before];
  const flush = (): void => {
    if (ids.length > 0) segments.push({ kind: "ids", ids: Int32Array.from(ids) });
    ids = [];
  };
  ids.push(...encode(before!));
  for (const [index, part] of image.entries()) {
    if (part.kind === "marker") {
      ids.push(...encode(part.text));
      continue;
    }
    flush();
    const { kind: _, ...rows } = part;
    segments.push({ kind: "media", media: { ...rows, hash: String(index) } satisfies Media });
  }
  ids.push(...encode(after));
  flush();
  return segments;
}

/** @param positions one or three per row; absent: consecutive */
function chunksOf(prompt: readonly PromptSegment[], positions: Int32Array | undefined, tokenizer: Tokenizer): Chunk[] {
  const all = prompt.reduce((sum, part) => sum + rowsOf(part), 0);
  const perRow = positions ? positions.length / all : 1;
  let start = 0;
  return prompt.map((part): Chunk => {
    const first = start;
    start += rowsOf(part);
    const axis = (which: number): number[] =>
      Array.from({ length: start - first }, (_, i) => positions?.[(first + i) * perRow + which] ?? first + i);
    if (part.kind === "ids") {
      const tokens = [...part.ids];
      const pieces = tokens.map((id) => tokenizer.detokenize([id], { special: true }));
      return { type: "text", tokens, pieces, pos: axis(0) };
    }
    const { rows, isTwoWay, positions: own } = part.media;
    const counts = { n_tokens: rows, n_pos: own?.length ?? rows, non_causal: isTwoWay };
    const index = perRow === 1 ? { pos: axis(0) } : { pos_sections: { t: axis(0), y: axis(1), x: axis(2) } };
    return { type: "image", ...counts, ...index };
  });
}

const rowsOf = (part: PromptSegment): number => (part.kind === "ids" ? part.ids.length : part.media.rows);

/** Little-endian, concatenated. */
function writeFloats(path: string, arrays: readonly Float32Array[]): void {
  const temporary = `${path}.partial`;
  const bytes = arrays.map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength));
  writeFileSync(temporary, Buffer.concat(bytes));
  renameSync(temporary, path);
}
