/**
 * Records llama.cpp's spectrograms and rows of the recordings of test/engine/hearing/audio-model.ts, for
 * test/engine/hearing/rows/.
 *
 *   bun bench/record-audio-rows.ts LLAMA_CPP [KIND …]
 *
 * LLAMA_CPP: a source folder, built in its folder `build` with the target `mtmd`.
 *
 * Needs g++. At de3ff81 llama.cpp ends with an error for Ultravox and Voxtral: it expects a row less than its graph
 * makes (`clip_n_output_tokens` rounds down), and it averages rows of Voxtral's encoder, as the original does not
 * (`audio_has_avgpool`). Both were changed before their rows were recorded.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import {
  EVERY,
  KINDS,
  makeAudioEncoder,
  RECORDINGS,
  recordingOf,
  recordingsOf,
  type AudioEncoderKind,
} from "../test/engine/hearing/audio-model.ts";
import { programBeside } from "./llama-source.ts";

const [source, ...wanted] = process.argv.slice(2);
if (source === undefined) throw new Error("expected a folder with the source of llama.cpp");
const folder = await mkdtemp(join(tmpdir(), "hearth-rows-"));
try {
  const run = await programBeside(source, {
    name: "audio-rows",
    folder,
    includes: ["include", "ggml/include", "tools/mtmd", "vendor"],
    libraries: ["mtmd"],
  });
  for (const [name, seconds] of Object.entries(RECORDINGS))
    await Bun.write(join(folder, `${name}.f32`), recordingOf(seconds));
  for (const kind of wanted.length > 0 ? (wanted as AudioEncoderKind[]) : KINDS) {
    const encoder = join(folder, `${kind}.gguf`);
    await writeGguf(encoder, makeAudioEncoder(kind));
    const out = resolve(import.meta.dir, `../test/engine/hearing/rows/${kind}.bin`);
    const recordings = recordingsOf(kind).map(([name]) => join(folder, `${name}.f32`));
    await run([encoder, kind, out, String(EVERY.frame), String(EVERY.row), ...recordings]);
  }
} finally {
  await rm(folder, { recursive: true });
}
