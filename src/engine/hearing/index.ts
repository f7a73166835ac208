/**
 * Recordings for text models: from an encoder file and decoded samples to parts of a prompt. The encoders are listed in
 * `encoders/index.ts`.
 */
import type { Program, Session } from "../program/backend.ts";
import { vectorDimOf } from "../backends/check-batch.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { openEncoder, type EncoderModel } from "../vision/clip.ts";
import { loadPart, type EncoderOptions } from "../vision/encoder-part.ts";
import type { ImagePart, ImageRows, RowCount } from "../vision/index.ts";
import { runWithPauses } from "../vision/steps.ts";
import type { AudioEncoderSpec, Sheet, Stage } from "./encoder-spec.ts";
import { encoderSpecOf } from "./encoders/index.ts";

/** An audio encoder on a backend. Encodes one recording at a time; other calls wait. */
export interface AudioEncoder {
  /** The parts for a recording with this many samples, without encoding it. */
  layout(samples: number): readonly ImagePart<RowCount>[];
  /** The same parts with their rows, for samples at 16 kHz. An aborted signal ends it with `cancelled` at a pause. */
  encode(samples: Float32Array, signal?: AbortSignal): Promise<readonly ImagePart<ImageRows>[]>;
  /** The encoder's input: the pieces of a recording. For diagnostics. */
  sheets(samples: Float32Array): Promise<readonly Sheet[]>;
  /** The rows of a piece, (rows, dim). `check` is awaited from time to time, and may end the encoding by throwing. */
  encodePiece(piece: Sheet, check: () => Promise<void>): Promise<Float32Array>;
  /** Values per row. */
  readonly dim: number;
  /** Bytes of its programs besides the mapped file. */
  readonly bytes: number;
  /** Bytes on a GPU. */
  readonly vramBytes: number;
  close(): void;
}

/**
 * Opens an audio encoder for a text model: keys, hyperparameters and the shapes of all tensors are checked, also
 * against the text model. The file must stay open while the encoder is used; the caller closes it.
 */
export async function openAudioEncoder(gguf: Gguf, options: EncoderOptions): Promise<AudioEncoder> {
  const model = openEncoder(gguf, "audio");
  const spec = encoderSpecOf(model);
  const dim = options.text ? rowDimOf(model, spec, options.text) : widthOf(spec);
  const sessions: Session[] = [];
  try {
    const { weights = model.weights } = spec;
    for (const { part, rowsMax } of spec.stages)
      sessions.push(await loadPart({ ...model, weights }, part, { ...options, rowsMax }));
    return makeEncoder({ spec, sessions, dim, pause: options.pause });
  } catch (error) {
    for (const session of sessions) session.close();
    throw error;
  }
}

const widthOf = ({ stages }: AudioEncoderSpec): number => stages.at(-1)!.part.result.dim;

/**
 * Values per row that the text model reads: more than the encoder computes if later layers read parts of images' rows,
 * which are zeros for recordings.
 */
function rowDimOf({ path, kind }: EncoderModel, spec: AudioEncoderSpec, text: Program): number {
  const [width, expected] = [widthOf(spec), vectorDimOf(text.steps)];
  if (width === expected || (width === text.shape.dim && expected > width)) return expected;
  const reads = `'${text.shape.arch}' of ${text.weights.path} reads rows of ${expected}`;
  throw new AppError("bad_file", `${path}: audio encoder '${kind}': ${reads}, got an encoder to ${width}`);
}

interface Made {
  readonly spec: AudioEncoderSpec;
  readonly sessions: readonly Session[];
  /** Values per row. */
  readonly dim: number;
  readonly pause: (() => Promise<void>) | undefined;
}

function makeEncoder({ spec, sessions, dim, pause }: Made): AudioEncoder {
  let last: Promise<unknown> = Promise.resolve(); // a session runs one piece at a time
  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const run = last.then(work);
    last = run.catch(() => {});
    return run;
  };
  const listen = (samples: Float32Array, check: () => Promise<void>) => runWithPauses(spec.listen(samples), check);
  /** Markers around runs of rows. */
  const around = <Rows>(runs: readonly Rows[]): ImagePart<Rows>[] => {
    const marker = (text: string): ImagePart<Rows>[] => (text === "" ? [] : [{ kind: "marker", text }]);
    const rows = runs.map((run): ImagePart<Rows> => Object.assign({ kind: "rows" as const }, run));
    return [...marker(spec.before), ...rows, ...marker(spec.after)];
  };
  return {
    dim,
    bytes: sessions.reduce((sum, { bytes }) => sum + bytes.scratch, 0),
    vramBytes: sessions.reduce((sum, { vramBytes = 0 }) => sum + vramBytes, 0),
    layout: (samples) => around(spec.rowsOf(samples).map((rows): RowCount => ({ rows, positions: rows }))),
    sheets: (samples) => listen(samples, async () => {}),
    encodePiece: (piece, check) => alone(() => encode(piece, { spec, sessions, check })),
    async encode(samples, signal) {
      const check = async (): Promise<void> => {
        await pause?.();
        if (signal?.aborted) throw new AppError("cancelled", "recording: cancelled by the caller");
      };
      const all = await alone(async () => {
        const pieces: Float32Array[] = [];
        for (const sheet of await listen(samples, check)) pieces.push(await encode(sheet, { spec, sessions, check }));
        return pieces;
      });
      const width = widthOf(spec);
      return around(
        all.map((values): ImageRows => {
          const vectors = dim === width ? values : widened(values, width, dim);
          return { rows: values.length / width, vectors, isTwoWay: false };
        }),
      );
    },
    close() {
      for (const session of sessions) session.close();
    },
  };
}

/** Rows with zeros after their values. */
function widened(values: Float32Array, width: number, dim: number): Float32Array {
  const rows = values.length / width;
  const out = new Float32Array(rows * dim);
  for (let row = 0; row < rows; row++) out.set(values.subarray(row * width, (row + 1) * width), row * dim);
  return out;
}

interface Opened {
  readonly spec: AudioEncoderSpec;
  readonly sessions: readonly Session[];
  readonly check: () => Promise<void>;
}

/** The rows of a piece, (rows, dim). */
async function encode(piece: Sheet, { spec, sessions, check }: Opened): Promise<Float32Array> {
  let sheet = piece;
  for (const [i, stage] of spec.stages.entries()) {
    await check();
    sheet = await runStage(stage, sheet, { session: sessions[i]!, check });
  }
  return sheet.values;
}

async function runStage(
  { part, rowsMax, isRowwise, inputOf }: Stage,
  sheet: Sheet,
  { session, check }: { session: Session; check: () => Promise<void> },
): Promise<Sheet> {
  const { batches, time, bins, fill, positionOf } = inputOf(sheet);
  const rows = batches * time * bins;
  const { dim } = part.result;
  const values = new Float32Array(rows * dim);
  const block = isRowwise ? rowsMax : rows;
  for (let first = 0; first < rows; first += block) {
    const count = Math.min(block, rows - first);
    const run = { slot: 0, start: 0, tokens: new Int32Array(count), input: fill(first, count), states: "all" } as const;
    const positions = positionOf && Int32Array.from({ length: 3 * count }, (_, i) => positionOf(Math.floor(i / 3)));
    values.set(await session.states([{ ...run, ...(positions && { positions }) }], check), first * dim);
  }
  return { values, batches, time, bins, channels: dim };
}
