/** The file's pooling decides whether its model generates. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine } from "../../../src/engine/batching/load.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { makeModel } from "../architectures/models.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-pooling-"))));
afterAll(() => rm(folder, { recursive: true }));

test.each([
  [undefined, false],
  [0xffffffff, false],
  [0, true],
  [3, true],
])("a decoder with the pooling type %p only embeds: %p", async (pooling, embedsOnly) => {
  const path = join(folder, `${pooling}.gguf`);
  const { metadata, tensors } = makeModel("llama");
  const stated = pooling === undefined ? {} : { "llama.pooling_type": { u32: pooling } };
  await writeGguf(path, { metadata: { ...metadata, ...stated }, tensors });
  const { engine, info } = await loadEngine(path, {
    backend: cpuBackend,
    loop: systemLoop(),
    open: mapFile,
    ctxLen: 64,
    slots: 1,
    chunk: 16,
    threads: 1,
    precise: true,
    cacheDir: undefined,
    emit: () => {},
    onEmbed: () => {},
  });
  expect(info.embedsOnly).toBe(embedsOnly);
  await engine.close();
});
