/** The longest context that a model's steps are right for: a longer one is refused, and the default is no longer. */
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
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-context-"))));
afterAll(() => rm(folder, { recursive: true }));

async function load(name: string, ctxLen: number | "auto") {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, makeModel(name));
  const { engine, info } = await loadEngine(path, {
    backend: cpuBackend,
    loop: systemLoop(),
    open: mapFile,
    ctxLen,
    slots: 1,
    chunk: 16,
    threads: 1,
    precise: true,
    cacheDir: undefined,
    emit: () => {},
    onEmbed: () => {},
  });
  await engine.close();
  return info;
}

test.each([
  ["deepseek32", 64],
  ["minimax-m3", 256], // 64 blocks of 4
])("%s: at most %i positions", async (name, most) => {
  expect(await load(name, "auto")).toMatchObject({ ctxLen: most, ctxLenTrained: 512 });
  expect(await load(name, most)).toMatchObject({ ctxLen: most });
  await expect(load(name, most + 1)).rejects.toThrow(`context length: expected at most ${most}, got ${most + 1}`);
});
