/** The process of `whisper.test.ts`: loads a folder of ONNX, and prints differences between logits. */
import { join } from "node:path";
import { openTransformers } from "../../../src/engine/backends/host/transformers/index.ts";
import { messageOf } from "../../../src/base/errors.ts";
import type { Program } from "../../../src/engine/program/backend.ts";

const folder = process.argv[2]!;
const names = ["onnx/decoder_model_merged.onnx", "onnx/encoder_model.onnx", "config.json"];
const files = names.map((name) => ({ name, path: join(folder, name) }));
const backend = await openTransformers(files, { threads: 1 });
const { hear, ...model } = backend.speech!;
const apart = (a: Float32Array, b: Float32Array): number =>
  a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);

const mel = Float32Array.from({ length: model.bins * 3000 }, (_, i) => Math.sin(i));
const window = await hear(mel);
const whole = await window.extend([1, 5, 9, 4]);
window.restart();
await window.extend([1, 5]);
const pieces = await window.extend([9, 4]);
window.restart();
const again = await window.extend([1, 5, 9, 4]);
const other = await (await hear(mel.map((value) => -value))).extend([1, 5, 9, 4]);

const options = { ctxLen: 24, slots: 1, precise: false, threads: 1, cacheDir: undefined };
const session = await backend.load({} as Program, options); // it has no steps
const failure = (work: Promise<unknown>): Promise<string> => work.then(() => "none", messageOf);
const empty = join(folder, "empty.json");
await Bun.write(empty, '{"model_type":"whisper"}');
console.log(
  JSON.stringify({
    pieces: apart(whole, pieces),
    again: apart(whole, again),
    other: apart(whole, other),
    model,
    silent: await failure(session.states([])),
    broken: await failure(openTransformers(files.with(2, { name: "config.json", path: empty }), { threads: 1 })),
  }),
);
