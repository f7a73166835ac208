/** T5 whole: its encoder reads a prompt, and its decoder answers as transformers' does. Files that ask for too much. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import type { Gguf, MetadataValue } from "../../../src/engine/formats/gguf/gguf.ts";
import { memoryLayers } from "../../../src/engine/program/memory.ts";
import { convertOriginal, readOriginals, readRows } from "../../library/convert/originals.ts";

const originals = await readOriginals();
const NAMES = ["T5", "T5-2", "MT5", "UMT5"];
const options = { ctxLen: 256, slots: 2, precise: true, threads: 1, cacheDir: undefined };

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-t5-"))));
afterAll(() => rm(folder, { recursive: true }));

const paths = new Map<string, Promise<string>>();
async function open(name: string): Promise<Gguf> {
  const path = paths.get(name) ?? convertOriginal(folder, { name, original: originals[name]! });
  paths.set(name, path);
  return openGguf(await path);
}

/** The same file with other metadata. */
const changed = (gguf: Gguf, key: string, value: MetadataValue): Gguf => ({
  ...gguf,
  metadata: new Map([...gguf.metadata, [key, value]]),
  read: (name) => gguf.read(name),
});

test.each(
  NAMES.flatMap((name) => [
    { name, backend: cpuBackend },
    { name, backend: simdBackend },
  ]),
)("$name answers with the tokens of transformers, one after another: $backend.name", async ({ name, backend }) => {
  const { read: ids, answer } = originals[name]!;
  const gguf = await open(name);
  const program = loadProgram(gguf);
  const rows = await readRows(program, { ids: ids!, backend, options });
  const session = await backend.load(program, options);
  const said = [program.reader!.start];
  while (said.length < answer!.length) {
    const start = said.length - 1;
    const tokens = Int32Array.of(said.at(-1)!);
    const logits = await session.run([{ slot: 1, start, tokens, memory: { id: "prompt", rows }, logits: "last" }]);
    said.push(logits.indexOf(Math.max(...logits)));
  }
  expect(said).toEqual([...answer!]);
  session.close();
  gguf.close();
});

test("a file with a table of distances for cross attention answers without it, as in transformers", async () => {
  const gguf = await open("T5");
  const name = "dec.blk.0.cross_attn_rel_b.weight";
  const own = gguf.tensors.get("dec.blk.0.attn_rel_b.weight")!;
  const tensors = new Map([...gguf.tensors, [name, { ...own, name }]]);
  const { steps } = loadProgram({ ...gguf, tensors, read: (each) => gguf.read(each === name ? own.name : each) });
  expect(steps).toEqual(loadProgram(gguf).steps);
  gguf.close();
});

test.each([
  ["t5.decoder_start_token_id", 320, "'t5.decoder_start_token_id': expected an id below 320, got 320"],
  ["t5.decoder_block_count", 3, "tensor 'dec.blk.2.attn_norm.weight': expected (64), got none"],
  ["t5.decoder_block_count", 1, "tensor 'dec.blk.1.attn_k.weight': 't5' has no such weight"],
  ["t5.attention.relative_buckets_count", 16, "tensor 'dec.blk.0.attn_rel_b.weight': expected (4, 16), got (4, 32)"],
])("a file with %s = %d is refused", async (key, value, says) => {
  const gguf = await open("T5");
  expect(() => loadProgram(changed(gguf, key, value))).toThrow(says);
  gguf.close();
});

test("a prompt has 4 to 4096 tokens, whatever a file says", async () => {
  const gguf = await open("T5");
  const rows = [1, 512, 1_000_000].map((ctxLen) => {
    const { memory, steps } = loadProgram(changed(gguf, "t5.context_length", ctxLen));
    return [memory!.rows, ...memoryLayers(steps).map((layer) => layer.rows)];
  });
  expect(rows).toEqual([4, 512, 4096].map((each) => [each, each, each]));
  gguf.close();
});
