/**
 * Media through the engine on a real model: vectors that are embeddings of tokens give the same answer as the tokens.
 */
import { resolve } from "node:path";
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine } from "../../../src/engine/batching/load.ts";
import type { PromptSegment } from "../../../src/engine/batching/prompt.ts";
import type { SequenceEvent } from "../../../src/engine/batching/sequence.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { openGgufFrom } from "../../../src/engine/formats/gguf/read.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";

setDefaultTimeout(60_000);

const path = resolve(import.meta.dir, "../../../models/hearth/hearth.gguf");
const listeners = new Map<number, (event: SequenceEvent) => void>();
const { engine, tokenizer } = await loadEngine(path, {
  backend: cpuBackend,
  loop: systemLoop(),
  open: mapFile,
  ctxLen: 64,
  slots: 1,
  chunk: 8,
  threads: 1,
  precise: true,
  cacheDir: undefined,
  emit: (events) => events.forEach((event) => listeners.get(event.id)?.(event)),
  onEmbed: () => {},
});
afterAll(() => engine.close());

/** (ids, dim) */
function embeddingsOf(ids: Int32Array): Float32Array {
  const gguf = openGgufFrom(mapFile, path);
  const { quant, shape } = gguf.tensors.get("token_embd.weight")!;
  const dim = shape[0]!;
  const bytes = (dim / quant.blockLen) * quant.blockBytes;
  const rows = new Float32Array(ids.length * dim);
  const table = gguf.read("token_embd.weight");
  for (const [i, id] of ids.entries()) {
    quant.dequantize(table.subarray(id * bytes, (id + 1) * bytes), rows.subarray(i * dim, (i + 1) * dim));
  }
  gguf.close();
  return rows;
}

async function ask(id: number, prompt: readonly PromptSegment[]) {
  const { promise, resolve: done } = Promise.withResolvers<{ text: string; cached: number; end: SequenceEvent }>();
  let [text, cached] = ["", 0];
  listeners.set(id, (event) => {
    if (event.kind === "text") text += event.text;
    else if (event.kind === "prompt") cached = event.cached;
    else done({ text, cached, end: event });
  });
  const options = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: 10 };
  await engine.submit({ id, prompt, options, shift: true });
  return promise;
}

test("vectors of token embeddings give the answer of the tokens, evaluated and from the cache", async () => {
  const encode = (text: string) => tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
  const parts = ["Once upon a time there was", " a little girl who lived in a house by the sea", ". She had"].map(
    encode,
  );
  const ids = (part: Int32Array): PromptSegment => ({ kind: "ids", ids: part });
  const shown = parts[1]!;
  const media = { hash: "girl", rows: shown.length, vectors: embeddingsOf(shown), isTwoWay: false };
  const usual = await ask(1, parts.map(ids));
  expect(usual.text.length).toBeGreaterThan(5);
  const mixed = [ids(parts[0]!), { kind: "media", media } as const, ids(parts[2]!)];
  for (const [time, id] of [2, 3].entries()) {
    const { text, cached, end } = await ask(id, mixed);
    expect([end.kind, text]).toEqual(["done", usual.text]);
    // the ids before the media are equal to the first prompt's; then all but the last two rows are cached
    expect(cached).toBe(time === 0 ? parts[0]!.length : parts.flatMap((part) => [...part]).length - 2);
  }
});
