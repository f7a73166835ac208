/** The golden projectors on a backend: rows of pictures, and the logits of text models after llama.cpp's rows. */
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { chooseBackend } from "../../../src/engine/backends/index.ts";
import { inputOf, layOut, type PromptSegment } from "../../../src/engine/batching/prompt.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import { repairGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import type { Backend, LoadOptions, Session } from "../../../src/engine/program/backend.ts";
import { promptOf } from "../../../src/cli/diagnostics/image-diagnostics.ts";
import { loadTokenizer } from "../../../src/engine/text/tokenizer/load.ts";
import { openImageEncoder, twoWayRowsOf } from "../../../src/engine/vision/index.ts";
import { nmse } from "../backends/compare.ts";
import { goldenPath, readFloats, readPicture, readProjector } from "./golden.ts";

/** Bounds for the logits of our rows and of the reference's own, which are rounded; see the README of the data. */
export const TOLERANCES: Readonly<Record<string, { ours: number; text: number }>> = {
  gemma3: { ours: 1e-6, text: 1e-6 },
  gemma3_f16: { ours: 1e-6, text: 1e-6 },
  gemma4uv: { ours: 5e-6, text: 5e-6 },
  gemma4v: { ours: 5e-5, text: 5e-6 },
  gemma4v_ple: { ours: 5e-5, text: 5e-6 },
  glm4v: { ours: 5e-6, text: 1e-10 },
  glm4v_ocr: { ours: 5e-6, text: 1e-10 },
  idefics3: { ours: 5e-6, text: 1e-10 },
  mlp: { ours: Infinity, text: 1e-10 }, // its rows differ from the trained model's
  mlp_nocls: { ours: Infinity, text: 1e-10 },
  pixtral: { ours: 5e-6, text: 1e-10 },
  pixtral_nomerge: { ours: 5e-6, text: 1e-10 },
  "qwen2.5vl_merger": { ours: 1e-6, text: 1e-6 }, // it takes no epsilon from the file
  qwen2vl_merger: { ours: 1e-6, text: 1e-6 },
  qwen3vl_merger: { ours: 5e-6, text: 1e-10 },
};
/** A picture of a thousand rows, which takes seconds. */
export const SLOW = "large";

/** Loads a text model of the data for pictures. */
export const loadText = (
  backend: Backend,
  gguf: Gguf,
  options: Pick<LoadOptions, "images"> & Partial<LoadOptions>,
): Promise<Session> =>
  backend.load(loadProgram(gguf), {
    ctxLen: 512,
    slots: 1,
    precise: true,
    threads: 1,
    cacheDir: undefined,
    ...options,
  });

/**
 * The error of the logits after each picture of a projector, or after some, whose text model runs on `backend`; the
 * encoder runs on the CPU.
 */
export async function textErrors(
  name: string,
  backend: Backend,
  { only, ...more }: { only?: readonly string[] } & Partial<LoadOptions> = {},
): Promise<ReadonlyMap<string, number>> {
  const { images, text, mmproj, prompt } = readProjector(name);
  const gguf = repairGguf(openGguf(goldenPath(text)));
  const clip = openGguf(goldenPath(mmproj));
  const tokenizer = loadTokenizer(gguf.metadata, gguf.path);
  const cpu = await chooseBackend("auto", { layers: 0 });
  const encoder = await openImageEncoder(clip, { backend: cpu, text: loadProgram(gguf), threads: 1 });
  const session = await loadText(backend, gguf, { images: { twoWayRows: twoWayRowsOf(clip) }, ...more });
  const errors = new Map<string, number>();
  try {
    for (const [image, expected] of Object.entries(images)) {
      if (image === SLOW || (only && !only.includes(image))) continue;
      const sequence = promptOf(prompt, await encoder.encode(readPicture(expected)), tokenizer);
      const theirs = withRows(sequence, readFloats(expected.embd.file));
      errors.set(image, nmse(await lastLogits(session, theirs), readFloats(expected.logits.file)));
    }
    return errors;
  } finally {
    session.close();
    encoder.close();
    for (const file of [gguf, clip]) file.close();
  }
}

/** The error of the rows of a picture, by an encoder on `backend`; undefined for a reference that is rounded. */
export async function rowError(name: string, backend: Backend, image: string): Promise<number | undefined> {
  const { images, mmproj } = readProjector(name);
  const expected = images[image]!; // every projector has the pictures of the data
  const wanted = expected.fixed ?? expected.exact;
  if (!wanted || name === "mlp_nocls") return undefined; // its reference lacks a layer
  const clip = openGguf(goldenPath(mmproj));
  const encoder = await openImageEncoder(clip, { backend, text: undefined, threads: 1 });
  try {
    const parts = await encoder.encode(readPicture(expected));
    const rows = parts.flatMap((part) => (part.kind === "rows" ? [...part.vectors] : []));
    return nmse(Float32Array.from(rows), readFloats(wanted.file));
  } finally {
    encoder.close();
    clip.close();
  }
}

/** The same with other rows, for each run of media in turn. */
export function withRows(sequence: readonly PromptSegment[], rows: Float32Array): PromptSegment[] {
  let at = 0;
  return sequence.map((part) => {
    if (part.kind === "ids") return part;
    const { length } = part.media.vectors;
    const vectors = rows.subarray(at, (at += length));
    return { kind: "media", media: { ...part.media, vectors } };
  });
}

export async function lastLogits(session: Session, sequence: readonly PromptSegment[]): Promise<Float32Array> {
  const { keys, media } = layOut(sequence);
  const input = inputOf({ tokens: keys, media }, { start: 0, end: keys.length });
  return (await session.run([{ slot: 0, start: 0, ...input, logits: "last" }])).slice();
}
