/** Opens the image encoder of a model, from its projector file or its own file. */
import type { Backend } from "../program/backend.ts";
import { AppError, backendTraits, messageOf } from "../../base/index.ts";
import type { EngineInfo, LoadedEngine } from "../batching/load.ts";
import { openImageEncoder, type RgbImage } from "../vision/index.ts";
import { makeImages, type Images } from "./images.ts";
import type { LoadMessage } from "./messages.ts";

/** Decodes image files to pixels on this machine. */
export type DecodeImage = (bytes: Uint8Array, signal: AbortSignal) => Promise<RgbImage>;

/** The result for a projector: an encoder, or the reason why there is no encoder, and a note on the model. */
interface Vision {
  readonly images: Images | undefined;
  readonly info: Partial<EngineInfo>;
}

interface Parts {
  /** Runs the encoder. */
  readonly backend: Backend;
  readonly model: LoadedEngine;
  readonly decode: DecodeImage;
  readonly onImage: (how: "encoded" | "reused") => void;
  /** Lets other work run. */
  readonly pause: () => Promise<void>;
  readonly message: LoadMessage;
  readonly signal: AbortSignal;
}

/**
 * Opens a model's projector. A model whose projector cannot run here, or whose embedded one is invalid, continues
 * without images. Throws `bad_file` for a damaged projector file.
 */
export async function openImages(parts: Parts): Promise<Vision | undefined> {
  const { backend, model, decode, onImage, pause, message, signal } = parts;
  if (!model.projector) return undefined;
  const { gguf, isOwn } = model.projector;
  const closeFile = (): void => (isOwn ? gguf.close() : undefined);
  const { backend: runsOn } = model.info;
  if (backendTraits(runsOn).tokensOnly) {
    closeFile();
    return {
      images: undefined,
      info: { visionMissing: `images need another backend than '${runsOn}'` },
    };
  }
  try {
    const { threads, simdLevel } = message;
    const options = { backend, text: model.program, threads, simdLevel, signal, pause };
    const encoder = await openImageEncoder(gguf, options);
    const close = (): void => {
      encoder.close();
      closeFile();
    };
    const { layout, encode } = encoder;
    const { bytes, vramBytes } = model.info;
    const weights = bytes.weights + [...gguf.tensors.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
    return {
      images: makeImages({ encoder: { layout, encode, close }, decode, onImage }),
      info: {
        media: ["image"],
        bytes: { ...bytes, weights, scratch: bytes.scratch + encoder.bytes },
        vramBytes: vramBytes + encoder.vramBytes,
      },
    };
  } catch (error) {
    closeFile();
    const isKnown =
      error instanceof AppError && (error.code === "unsupported" || (error.code === "bad_file" && !isOwn));
    if (!isKnown) throw error;
    return { images: undefined, info: { visionMissing: messageOf(error) } };
  }
}
