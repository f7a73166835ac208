/**
 * The process of `transformers.test.ts`: loads a folder of ONNX, and prints the differences between logits that should
 * be equal.
 */
import { join } from "node:path";
import { openTransformers } from "../../../src/engine/backends/host/transformers/index.ts";
import { messageOf } from "../../../src/base/errors.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { listFolder } from "../../../src/library/convert/folder.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";

const folder = process.argv[2]!;
const names = await listFolder(folder);
const to = `${folder}.gguf`;
const all = { label: "model", files: new Map(names.map((name) => [name, join(folder, name)])) };
const { files = [] } = await convertModel({ folder: all, to });
const gguf = openGguf(to);
const backend = await openTransformers(files, { threads: 1 });
const program = backend.program!(gguf);
const options = { ctxLen: 256, slots: 3, precise: false, threads: 1, cacheDir: undefined };
const session = await backend.load(program, options);
const { vocabSize } = program.shape;

const COUNT = 40;
const ids = Int32Array.from({ length: COUNT }, (_, i) => (i * 37) % vocabSize);
const whole = (await session.run([{ slot: 0, start: 0, tokens: ids, logits: "all" }])).slice();
const row = (i: number): Float32Array => whole.subarray(i * vocabSize, (i + 1) * vocabSize);
function apart(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Infinity;
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);
}
const rest = async (slot: number, start: number): Promise<number> =>
  apart(
    await session.run([{ slot, start, tokens: ids.subarray(start), logits: "all" }]),
    whole.subarray(start * vocabSize),
  );

/** Two sequences, a piece of each in one run. */
async function pieces(): Promise<number> {
  await session.run([1, 2].map((slot) => ({ slot, start: 0, tokens: ids.subarray(0, 7), logits: "none" as const })));
  const batch = [1, 2].map((slot) => ({ slot, start: 7, tokens: ids.subarray(7, 30), logits: "last" as const }));
  const found = await session.run(batch);
  return Math.max(apart(found.slice(0, vocabSize), row(29)), apart(found.slice(vocabSize), row(29)));
}

async function steps(): Promise<number> {
  let most = 0;
  for (let i = 30; i < COUNT; i++) {
    const found = await session.run([{ slot: 1, start: i, tokens: ids.subarray(i, i + 1), logits: "last" }]);
    most = Math.max(most, apart(found, row(i)));
  }
  return most;
}

async function copied(): Promise<number> {
  session.copy({ from: 1, to: 2, length: 10 });
  return rest(2, 10);
}

/** Two tokens, a gap, the others: as a text of its own. */
async function shifted(): Promise<number> {
  session.shift(0, { keep: 2, discard: 20, length: COUNT });
  const next = { start: 20, tokens: Int32Array.of(5), logits: "last" as const };
  const found = (await session.run([{ slot: 0, ...next }])).slice();
  const text = Int32Array.from([...ids.subarray(0, 2), ...ids.subarray(22), 5]);
  return apart(found, await session.run([{ slot: 1, start: 0, tokens: text, logits: "last" }]));
}

async function failure(work: () => Promise<unknown>): Promise<string> {
  return work().then(
    () => "none",
    (error: unknown) => messageOf(error),
  );
}

const graph = files.find(({ name }) => name.endsWith(".onnx"))!;
const external = { name: graph.name, path: process.argv[3] ?? "" };
const strange = files.map((file) =>
  file.name === "config.json" ? { ...file, path: join(folder, "tokenizer.json") } : file,
);
console.log(
  JSON.stringify({
    pieces: await pieces(),
    steps: await steps(),
    shorter: await rest(0, 20),
    copied: await copied(),
    shifted: await shifted(),
    missing: await failure(() => openTransformers([external], { threads: 1 })),
    hostile: await failure(() => openTransformers(strange, { threads: 1 })),
  }),
);
