/** Whisper on the engine's own steps: the encoder and the decoder of its file. */
import { AppError } from "../../base/index.ts";
import type { LoadedEngine } from "../batching/load.ts";
import type { SpeechDecoder } from "../batching/load-speech.ts";
import { openAudioEncoder, type AudioEncoder } from "../hearing/index.ts";
import { getNumber } from "../formats/gguf/keys.ts";
import { FRAMES } from "../hearing/mel.ts";
import type { Backend, Memory } from "../program/backend.ts";
import type { HeardWindow, SpeechModel } from "../program/speech.ts";
import type { LoadMessage } from "./messages.ts";

interface Parts {
  /** Runs the encoder. */
  readonly backend: Backend;
  readonly model: LoadedEngine;
  readonly message: Pick<LoadMessage, "threads" | "simdLevel">;
  readonly signal: AbortSignal;
  /** Lets other work run. */
  readonly pause: () => Promise<void>;
}

interface OwnSpeech extends SpeechModel {
  /** Sizes of the whole model. */
  readonly info: Pick<LoadedEngine["info"], "bytes" | "vramBytes">;
}

/** Undefined for a model that does not transcribe speech. Throws `bad_file` if it has no encoder. */
export async function openOwnSpeech({ model, backend, message, signal, pause }: Parts): Promise<OwnSpeech | undefined> {
  const { decoder, projector, program, info } = model;
  if (!decoder) return undefined;
  if (!projector)
    throw new AppError("bad_file", `${program.weights.path}: expected an encoder of recordings, got none`);
  const { threads, simdLevel } = message;
  const encoder = await openAudioEncoder(projector.gguf, {
    backend,
    text: undefined,
    threads,
    simdLevel,
    signal,
    pause,
  });
  if (encoder.dim !== program.shape.dim) {
    encoder.close();
    const expected = `an encoder to rows of ${program.shape.dim}`;
    throw new AppError("bad_file", `${projector.gguf.path}: expected ${expected}, got ${encoder.dim}`);
  }
  const own = [...projector.gguf.tensors.values()].reduce((all, { byteLength }) => all + byteLength, 0);
  const bins = getNumber(projector.gguf.metadata, "clip.audio.num_mel_bins"); // the encoder has checked it
  const { bytes, vramBytes } = info;
  return {
    ...speechOf(encoder, decoder, { vocabSize: program.shape.vocabSize, bins, pause }),
    info: {
      bytes: { ...bytes, weights: bytes.weights + own, scratch: bytes.scratch + encoder.bytes },
      vramBytes: vramBytes + encoder.vramBytes,
    },
  };
}

type Sizes = Pick<SpeechModel, "vocabSize" | "bins"> & Pick<Parts, "pause">;

function speechOf(
  encoder: AudioEncoder,
  { session, ...decoder }: SpeechDecoder,
  { pause, ...sizes }: Sizes,
): SpeechModel {
  const { bins } = sizes;
  let windows = 0;
  return {
    ...sizes,
    ...decoder,
    async hear(mel) {
      const piece = { values: byTime(mel, bins), batches: 1, time: FRAMES, bins: 1, channels: bins };
      const rows = await encoder.encodePiece(piece, pause);
      return windowOf(session, { id: String(windows++), rows });
    },
    close: () => encoder.close(),
  };
}

function windowOf(session: SpeechDecoder["session"], memory: Memory): HeardWindow {
  let start = 0;
  return {
    async extend(tokens) {
      const run = { slot: 0, start, tokens: Int32Array.from(tokens), memory, logits: "last" as const };
      const logits = await session.run([run]);
      start += tokens.length;
      return logits.slice();
    },
    restart: () => void (start = 0),
  };
}

/** @param mel (bins, frames); the result is (frames, bins) */
function byTime(mel: Float32Array, bins: number): Float32Array {
  const out = new Float32Array(mel.length);
  for (let bin = 0; bin < bins; bin++)
    for (let frame = 0; frame < FRAMES; frame++) out[frame * bins + bin] = mel[bin * FRAMES + frame]!;
  return out;
}
