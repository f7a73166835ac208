/** Opens the encoders of images and of recordings of a model, from its projector file or its own file. */
import type { Backend } from "../program/backend.ts";
import { memoryDim } from "../program/memory.ts";
import { AppError, assert, backendTraits, messageOf } from "../../base/index.ts";
import { isAudio } from "../audio/format.ts";
import { RECORDING_SECONDS_MAX, SAMPLE_RATE } from "../audio/sound.ts";
import type { EngineInfo } from "../batching/engine-info.ts";
import type { LoadedEngine } from "../batching/load.ts";
import type { AudioEncoder } from "../hearing/index.ts";
import {
  openImageEncoder,
  projectorKind,
  readImageHeader,
  type ImageEncoder,
  type ImageRows,
  type RgbImage,
} from "../vision/index.ts";
import { makeImages, type Images, type Sense } from "./images.ts";
import type { LoadMessage } from "./messages.ts";

/** Decodes image files to pixels on this machine. */
export type DecodeImage = (bytes: Uint8Array, signal: AbortSignal) => Promise<RgbImage>;

/** Decodes audio files to samples at 16 kHz. Throws `too_large` for more than `secondsMax`. */
export type DecodeAudio = (
  bytes: Uint8Array,
  options: { signal?: AbortSignal; secondsMax: number },
) => Promise<Float32Array>;

/** The result for a projector: its encoders, or the reasons why they are missing, as a note on the model. */
interface Media {
  readonly images: Images | undefined;
  readonly info: Partial<EngineInfo>;
}

interface Parts {
  /** Runs the encoders. */
  readonly backend: Backend;
  readonly model: LoadedEngine;
  /** Undefined: no images here. */
  readonly decodeImage: DecodeImage | undefined;
  /** Undefined: no recordings here. */
  readonly decodeAudio: DecodeAudio | undefined;
  readonly onImage: (how: "encoded" | "reused") => void;
  /** Lets other work run. */
  readonly pause: () => Promise<void>;
  readonly message: LoadMessage;
  readonly signal: AbortSignal;
}

/** An encoder, or the reason why it does not run although the file has one. */
interface Opened<Encoder> {
  readonly encoder?: Encoder;
  readonly missing?: string;
}

/**
 * Opens a model's projector. A model whose projector cannot run here, or whose embedded one is invalid, continues
 * without images or without recordings. Throws `bad_file` for a damaged projector file.
 */
export async function openImages(parts: Parts): Promise<Media | undefined> {
  const { model, onImage } = parts;
  if (!model.projector) return undefined;
  const { gguf, isOwn } = model.projector;
  const closeFile = (): void => (isOwn ? gguf.close() : undefined);
  const image = await openImageSide(parts).catch(after(closeFile));
  const audio = await openAudioSide(parts).catch(
    after(() => {
      image.encoder?.close();
      closeFile();
    }),
  );
  const encoders = [image.encoder, audio.encoder].filter((encoder) => encoder !== undefined);
  const info: Partial<EngineInfo> = {
    ...(image.missing !== undefined && { visionMissing: image.missing }),
    ...(audio.missing !== undefined && { hearingMissing: audio.missing }),
  };
  if (encoders.length === 0) {
    closeFile();
    return { images: undefined, info };
  }
  const vision = image.encoder && imageSense(image.encoder, parts);
  const hearing = audio.encoder && audioSense(audio.encoder, parts);
  const sum = (of: (encoder: ImageEncoder | AudioEncoder) => number): number =>
    encoders.reduce((all, encoder) => all + of(encoder), 0);
  const { bytes, vramBytes } = model.info;
  const weights = bytes.weights + [...gguf.tensors.values()].reduce((all, { byteLength }) => all + byteLength, 0);
  return {
    images: makeImages({
      isSingle: model.program.memory !== undefined,
      senseOf(file) {
        const isHeard = isAudio(file);
        const sense = isHeard ? hearing : vision;
        if (sense) return sense;
        throw new AppError("bad_request", `the model does not support ${isHeard ? "audio" : "images"}`);
      },
      close() {
        for (const encoder of encoders) encoder.close();
        closeFile();
      },
      onImage,
    }),
    info: {
      ...info,
      media: [...(vision ? ["image" as const] : []), ...(hearing ? ["audio" as const] : [])],
      bytes: { ...bytes, weights, scratch: bytes.scratch + sum((encoder) => encoder.bytes) },
      vramBytes: vramBytes + sum((encoder) => encoder.vramBytes),
    },
  };
}

const after =
  (act: () => void) =>
  (error: unknown): never => {
    act();
    throw error;
  };

async function openImageSide(parts: Parts): Promise<Opened<ImageEncoder>> {
  const { program } = parts.model;
  if (program.memory && imageToken(parts.model) === undefined)
    return { missing: `${program.weights.path}: expected a token '${IMAGE_TOKEN}' with an embedding, got none` };
  return openEncoder(parts, {
    isThere: parts.decodeImage !== undefined && projectorKind(parts.model.projector!.gguf.metadata) !== "",
    what: "images",
    open: openImageEncoder,
  });
}

/** An image in prompts of Llama 3.2 Vision, whose text attends to the image's rows. */
const IMAGE_TOKEN = "<|image|>";

/** Its id; undefined: it has no embedding. */
function imageToken({
  tokenizer,
  program: { steps },
}: Pick<LoadedEngine, "tokenizer" | "program">): number | undefined {
  const [id, ...more] = tokenizer.encode(IMAGE_TOKEN, { addSpecial: false, parseSpecial: true });
  const [first] = steps;
  const isThere = id !== undefined && more.length === 0 && first?.op === "embed" && id < first.table.outDim;
  return isThere ? id : undefined;
}

/** The code for recordings is loaded with the first model that has an audio encoder. */
const openAudioSide = (parts: Parts): Promise<Opened<AudioEncoder>> =>
  openEncoder(parts, {
    isThere: parts.decodeAudio !== undefined && projectorKind(parts.model.projector!.gguf.metadata, "audio") !== "",
    what: "recordings",
    open: async (gguf, options) => (await import("../hearing/index.ts")).openAudioEncoder(gguf, options),
  });

interface Wanted<Encoder> {
  /** True if the file has such an encoder and its input can be decoded here. */
  readonly isThere: boolean;
  readonly what: string;
  readonly open: (...given: Parameters<typeof openImageEncoder>) => Promise<Encoder>;
}

async function openEncoder<Encoder>(
  { model, backend, message, signal, pause }: Parts,
  { isThere, what, open }: Wanted<Encoder>,
): Promise<Opened<Encoder>> {
  if (!isThere) return {};
  const { backend: runsOn } = model.info;
  if (backendTraits(runsOn).tokensOnly) return { missing: `${what} need another backend than '${runsOn}'` };
  const { gguf, isOwn } = model.projector!; // checked by the caller
  const { threads, simdLevel } = message;
  try {
    return { encoder: await open(gguf, { backend, text: model.program, threads, simdLevel, signal, pause }) };
  } catch (error) {
    const isKnown =
      error instanceof AppError && (error.code === "unsupported" || (error.code === "bad_file" && !isOwn));
    if (!isKnown) throw error;
    return { missing: messageOf(error) };
  }
}

const imageSense = (encoder: ImageEncoder, { decodeImage, model }: Parts): Sense => ({
  name: "image",
  layout: async (bytes) => encoder.layout(readImageHeader(bytes)),
  async encode(bytes, signal) {
    const parts = await encoder.encode(await decodeImage!(bytes, signal), signal); // required by image encoders
    return parts.map((part) =>
      part.kind === "rows" && part.memory ? { ...part, token: tokenFor(part, model) } : part,
    );
  },
});

/** The token of an image that is a memory. Throws `bad_file` if the text model has no room for its rows. */
function tokenFor({ memory }: ImageRows, model: Parts["model"]): number {
  const { memory: own, shape, weights } = model.program;
  assert(memory && own, "a memory for a model without cross attention");
  const rows = memory.length / memoryDim(own);
  if (rows <= own.rows) return imageToken(model)!; // opening checked it
  const expected = `'${shape.arch}' of ${weights.path} takes at most ${own.rows} rows`;
  throw new AppError("bad_file", `${model.projector!.gguf.path}: ${expected}, got an image of ${rows}`); // an image was encoded, so there is a projector
}

/** Number of seconds on which the rate of rows is measured. */
const MEASURED_SECONDS = 300;

/** Samples are kept from measuring to encoding, as long as the request keeps the file. */
function audioSense(encoder: AudioEncoder, { decodeAudio, model }: Parts): Sense {
  const decoded = new WeakMap<Uint8Array, Float32Array>();
  const { ctxLen } = model.info;
  const measured = encoder.layout(MEASURED_SECONDS * SAMPLE_RATE);
  const rows = measured.reduce((sum, part) => sum + (part.kind === "rows" ? part.rows : 0), 0);
  const secondsMax = Math.min(RECORDING_SECONDS_MAX, Math.ceil((ctxLen * MEASURED_SECONDS) / rows));
  let last: Promise<unknown> = Promise.resolve(); // samples take far more memory than files
  const decode = (bytes: Uint8Array, signal?: AbortSignal): Promise<Float32Array> => {
    // Required by audio encoders
    const run = last.then(() => decodeAudio!(bytes, { ...(signal && { signal }), secondsMax }));
    last = run.catch(() => {});
    return run.catch((error: unknown) => {
      if (!(error instanceof AppError) || error.code !== "too_large") throw error;
      const why = `a context of ${ctxLen} tokens has no room for a longer recording`;
      throw new AppError("too_large", `${error.message}: ${why}`, { cause: error });
    });
  };
  return {
    name: "recording",
    async layout(bytes, signal) {
      const samples = await decode(bytes, signal);
      decoded.set(bytes, samples);
      return encoder.layout(samples.length);
    },
    async encode(bytes, signal) {
      const samples = decoded.get(bytes) ?? (await decode(bytes, signal));
      decoded.delete(bytes);
      return encoder.encode(samples, signal);
    },
  };
}
