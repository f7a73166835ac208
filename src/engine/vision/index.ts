/**
 * Images for text models: from a projector file and a decoded image to its part of a prompt. `decode.ts` decodes files;
 * `projectors/index.ts` lists the projectors.
 */
import type { Program, Session, StateRows } from "../program/backend.ts";
import { vectorDimOf } from "../backends/check-batch.ts";
import { AppError } from "../../base/index.ts";
import { memoryDim } from "../program/memory.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { openClip, type ClipModel } from "./clip.ts";
import { loadPart, type EncoderOptions } from "./encoder-part.ts";
import { sizeText, type RgbImage, type Size } from "./image.ts";
import { fitInto, patchRows, targetSize, toPixels, type Pixels } from "./prepare.ts";
import type { Grid, Part, Projector, TilePart } from "./projector.ts";
import { projectorOf } from "./projectors/index.ts";
import { runAtOnce, runWithPauses, type Steps } from "./steps.ts";

export type { RgbImage, Size } from "./image.ts";

/** Rows of an image for a prompt: `Media` of engine/batching/prompt.ts without the hash, which the caller adds. */
export interface ImageRows {
  readonly rows: number;
  /** (rows, dim) */
  readonly vectors: Float32Array;
  /** Positions of its rows, relative to its beginning; omitted: consecutive. */
  readonly positions?: { readonly of: Int32Array; readonly perRow: 3; readonly length: number };
  readonly isTwoWay: boolean;
  /** (n, dim) rows for cross attention; then `rows` is 1, the image's token, and `vectors` is empty. */
  readonly memory?: Float32Array;
}

/**
 * The parts of a prompt for an image, in order: texts of control tokens, each tokenized separately with special tokens
 * recognised and none added, and rows. Most families have one run of rows between two markers; an image that is cut
 * into tiles has several.
 */
export type ImagePart<Rows> = { readonly kind: "marker"; readonly text: string } | ({ readonly kind: "rows" } & Rows);

/** The number of rows of a part, and of positions it occupies. */
export interface RowCount {
  readonly rows: number;
  readonly positions: number;
}

/** A projector file on a backend. Encodes one image at a time; other calls wait. */
export interface ImageEncoder {
  /**
   * The parts for an image of that size, without encoding it. Throws `bad_request` if the encoder does not support the
   * size.
   */
  layout(size: Size): readonly ImagePart<RowCount>[];
  /** The same parts with their rows. An aborted signal ends it with `cancelled` at a pause. */
  encode(image: RgbImage, signal?: AbortSignal): Promise<readonly ImagePart<ImageRows>[]>;
  /** The encoder's input: all pictures in sequence, resized, padded and normalised. For diagnostics. */
  pixels(image: RgbImage): readonly Pixels[];
  /** Values per row: the text model's width, or more if several of its layers read parts of it. */
  readonly dim: number;
  /** Bytes of its programs besides the mapped file. */
  readonly bytes: number;
  /** Bytes on a GPU. */
  readonly vramBytes: number;
  close(): void;
}

/**
 * Opens a projector for a text model: keys, hyperparameters and the shapes of all tensors are checked, also against the
 * text model. The file must stay open while the encoder is used; the caller closes it.
 */
export async function openImageEncoder(gguf: Gguf, options: EncoderOptions): Promise<ImageEncoder> {
  const model = openClip(gguf);
  const projector = projectorOf(model);
  if (options.text) checkWidth(model, projector, options.text);
  const { rowsMax } = projector;
  const tower = await loadPart(model, projector.tower, { ...options, rowsMax });
  try {
    const projection = projector.projection && (await loadPart(model, projector.projection, { ...options, rowsMax }));
    return makeEncoder(model, projector, {
      tower,
      projection,
      pause: options.pause,
      hasSections: hasSections(options.text),
    });
  } catch (error) {
    tower.close();
    throw error;
  }
}

/** Maximum rows of an image that attend to each other in both directions. Throws as `openImageEncoder`. */
export const twoWayRowsOf = (gguf: Gguf): number => projectorOf(openClip(gguf)).twoWayRows ?? 0;

/** Returns whether the text model has three positions per row: time, height, width. */
const hasSections = (text: Program | undefined): boolean =>
  text?.steps.some((step) => step.op === "rope" && step.rope.sections !== undefined) ?? false;

function checkWidth({ path, kind }: ClipModel, { tower, projection, isMemory }: Projector, text: Program): void {
  const width = (projection ?? tower).result.dim;
  const expected = isMemory ? text.memory && memoryDim(text.memory) : vectorDimOf(text.steps);
  if (expected === undefined) {
    const why = `'${text.shape.arch}' of ${text.weights.path} runs without cross attention`;
    throw new AppError("unsupported", `${path}: projector '${kind}': ${why}`);
  }
  if (width === expected) return;
  const reads = `'${text.shape.arch}' of ${text.weights.path} reads rows of ${expected}`;
  throw new AppError("bad_file", `${path}: projector '${kind}': ${reads}, got a projector to ${width}`);
}

interface Opened {
  readonly tower: Session;
  readonly projection: Session | undefined;
  readonly hasSections: boolean;
  readonly pause: (() => Promise<void>) | undefined;
}

function makeEncoder(model: ClipModel, projector: Projector, opened: Opened): ImageEncoder {
  const { patch, tiling, twoWayRows = 0 } = projector;
  const { tower, projection, pause } = opened;
  const target = (size: Size): Size => {
    const wanted = targetSize(size, projector.size);
    checkRows(projector, { size, target: wanted });
    return wanted;
  };
  /** The rows of one picture, and their positions. */
  const layoutOf = (size: Size): Pick<ImageRows, "rows" | "positions"> => {
    if (projector.isMemory) return { rows: 1 };
    const { width, height } = target(size);
    const grid = { width: width / patch, height: height / patch };
    const shape = projector.shapeOf(grid);
    const rows = projector.count?.(grid) ?? shape.width * shape.height;
    return { rows, ...(opened.hasSections && { positions: positionsOf(shape) }) };
  };
  function* pixelsOf(image: RgbImage): Steps<readonly Pixels[]> {
    const pictures = tiling ? yield* tiling.picturesOf(image) : [yield* fitInto(image, target(image), projector)];
    const pixels: Pixels[] = [];
    for (const each of pictures) {
      pixels.push(toPixels(each, model.colours));
      yield;
    }
    return pixels;
  }
  let last: Promise<unknown> = Promise.resolve(); // a session runs one picture at a time

  return {
    dim: (projector.projection ?? projector.tower).result.dim,
    bytes: tower.bytes.scratch + (projection?.bytes.scratch ?? 0),
    vramBytes: (tower.vramBytes ?? 0) + (projection?.vramBytes ?? 0),
    layout: (size) =>
      partsOf(projector, size).map((part): ImagePart<RowCount> => {
        if (part !== "picture") return { kind: "marker", text: part.marker };
        const { rows, positions } = layoutOf(size);
        return { kind: "rows", rows, positions: positions?.length ?? rows };
      }),
    pixels: (image) => runAtOnce(pixelsOf(image)),
    async encode(image, signal) {
      const check = async (): Promise<void> => {
        await pause?.();
        if (signal?.aborted) throw new AppError("cancelled", "image: cancelled by the caller");
      };
      const run = last.then(async () => {
        const encoded: Float32Array[] = [];
        for (const each of await runWithPauses(pixelsOf(image), check))
          encoded.push(await encode(each, projector, { ...opened, check }));
        return encoded;
      });
      last = run.catch(() => {});
      const vectors = (await run).values();
      return partsOf(projector, image).map((part): ImagePart<ImageRows> => {
        if (part !== "picture") return { kind: "marker", text: part.marker };
        const rows = vectors.next().value!; // one per picture
        const read = projector.isMemory ? { vectors: new Float32Array(), memory: rows } : { vectors: rows };
        return { kind: "rows", ...layoutOf(image), ...read, isTwoWay: twoWayRows > 0 };
      });
    },
    close() {
      tower.close();
      projection?.close();
    },
  };
}

/** The parts of a prompt for an image: one picture between its markers, or the parts of a tiling. */
function partsOf({ before, after, tiling }: Projector, size: Size): readonly TilePart[] {
  if (tiling) return tiling.partsOf(size);
  const marker = (text: string): TilePart[] => (text === "" ? [] : [{ marker: text }]);
  return [...marker(before), "picture", ...marker(after)];
}

/**
 * Positions of rows on a grid: time is constant, height and width count lines and columns; text continues after the
 * longer side.
 */
function positionsOf({ width, height }: Size): NonNullable<ImageRows["positions"]> {
  const of = new Int32Array(width * height * 3);
  for (let row = 0; row < width * height; row++) of.set([0, Math.floor(row / width), row % width], row * 3);
  return { of, perRow: 3, length: Math.max(width, height) };
}

/** Refuses very long and narrow pictures, whose number of rows exceeds their family's limits. */
function checkRows({ patch, rowsMax }: Projector, { size, target }: { size: Size; target: Size }): void {
  const patches = (target.width / patch) * (target.height / patch);
  if (patches <= rowsMax) return;
  const limit = `expected at most ${rowsMax} patches, got ${patches}`;
  throw new AppError("bad_request", `image of ${sizeText(size)}: ${limit}: it is too narrow`);
}

/** The rows of one picture, (rows, dim). */
async function encode(
  pixels: Pixels,
  projector: Projector,
  { tower, projection, check }: Pick<Opened, "tower" | "projection"> & { check: () => Promise<void> },
): Promise<Float32Array> {
  await check();
  const { patch } = projector;
  const grid: Grid = { width: pixels.width / patch, height: pixels.height / patch };
  const states = await runRows(tower, towerRows(pixels, projector, grid), check);
  await check();
  const spans = projector.spansOf?.(grid);
  const dim = inputDim(projector.projection ?? projector.tower);
  const merged = { input: projector.merge(states, grid), dim, ...(spans && { spans }) };
  const rows = projection ? await runRows(projection, merged, check) : merged.input;
  return projector.finish ? projector.finish(rows, grid) : rows.slice(); // a session's array is reused
}

/** The input of an encoder's program: (rows, dim) */
interface InputRows extends Pick<StateRows, "positions" | "spans"> {
  readonly input: Float32Array;
  readonly dim: number;
}

function towerRows(pixels: Pixels, projector: Projector, grid: Grid): InputRows {
  const { patch, isSigned = false } = projector;
  const { count, order, added, positions, spans } = projector.rowsOf(grid);
  const stride = inputDim(projector.tower);
  const input = new Float32Array(count * stride);
  patchRows(pixels, patch, { into: input, stride, order });
  const own = 3 * patch * patch;
  if (isSigned) for (let i = 0; i < input.length; i++) input[i] = 2 * input[i]! - 1;
  if (added) {
    const width = stride - own;
    for (let row = 0; row < count; row++) input.set(added.subarray(row * width, (row + 1) * width), row * stride + own);
  }
  return { input, dim: stride, ...(positions && { positions }), ...(spans && { spans }) };
}

/** All rows of one sequence. */
function runRows(session: Session, { dim, ...rows }: InputRows, pause: () => Promise<void>): Promise<Float32Array> {
  const tokens = new Int32Array(rows.input.length / dim);
  return session.states([{ slot: 0, start: 0, tokens, ...rows, states: "all" }], pause);
}

const inputDim = ({ steps: [first] }: Part): number => (first?.op === "input" ? first.out.dim : 0);

export { projectorKind } from "./clip.ts";
export { decodeImage } from "./decode.ts";
export { decodeGif } from "./gif.ts";
export { sizeText } from "./image.ts";
export { readImageHeader } from "./image-header.ts";
export { cleanJpeg } from "./jpeg.ts";
export { withoutExtras } from "./png.ts";
export { hasProjector } from "./projectors/index.ts";
