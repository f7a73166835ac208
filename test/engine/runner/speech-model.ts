/** A small Whisper with random weights, as a folder of Hugging Face, and its load on our own steps. */
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import type { EmbedEvent } from "../../../src/engine/batching/embedder.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine } from "../../../src/engine/batching/load.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import type { Backend } from "../../../src/engine/program/backend.ts";
import { openOwnSpeech } from "../../../src/engine/runner/own-speech.ts";
import type { ModelFolder } from "../../../src/library/convert/folder.ts";
import { byteTokenizer, encodeSafetensors, writeFolder } from "../../library/convert/hugging-face.ts";
import { readOriginals, tensorsOf } from "../../library/convert/originals.ts";
import { makeModel } from "../architectures/models.ts";

/** Control tokens. */
const CONTROL = [
  "endoftext",
  "startoftranscript",
  "translate",
  "transcribe",
  "startofprev",
  "nospeech",
  "notimestamps",
];
export const [FIRST_CONTROL, FIRST_TIME, VOCAB] = [290, 297, 320];

/** Writes the folder to `at`. */
export async function writeWhisper(at: string): Promise<ModelFolder> {
  const original = (await readOriginals())["Whisper"]!;
  const added = CONTROL.map((name, i) => ({ id: FIRST_CONTROL + i, content: `<|${name}|>`, special: true }));
  return writeFolder(at, {
    "config.json": { ...original.config, suppress_tokens: [7], begin_suppress_tokens: [FIRST_CONTROL] },
    "generation_config.json": { suppress_tokens: [9] },
    "tokenizer.json": { ...byteTokenizer(makeModel("llama").metadata), added_tokens: added },
    "model.safetensors": encodeSafetensors(tensorsOf(original)),
  });
}

/** Opens a converted one. */
export async function openWhisper(
  file: string,
  { backend, encoder = simdBackend }: { readonly backend: Backend; readonly encoder?: Backend },
) {
  const refused = Promise.withResolvers<EmbedEvent>();
  const model = await loadEngine(file, {
    threads: 1,
    precise: true,
    cacheDir: undefined,
    backend,
    loop: systemLoop(),
    open: mapFile,
    ctxLen: 16, // a recording needs the whole context
    slots: "auto",
    chunk: 16,
    vision: { projector: undefined },
    emit: () => {},
    onEmbed: refused.resolve,
  });
  try {
    const options = { backend: encoder, model, message: { threads: 1, simdLevel: undefined } };
    const signal = new AbortController().signal;
    const speech = await openOwnSpeech({ ...options, signal, pause: async () => {} });
    return { model, speech: speech!, refused: refused.promise };
  } catch (error) {
    await model.engine.close();
    throw error;
  }
}
