/**
 * A runner in this process: the state that it keeps of requests, including those cancelled before their images are
 * read.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "bun:test";
import { chooseBackend } from "../../../src/engine/backends/index.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import type { FromRunner, ToRunner } from "../../../src/engine/runner/messages.ts";
import { startRunner } from "../../../src/engine/runner/runner.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { makeOneFile, picture } from "../vision/vision-model.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-held-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function startVision() {
  const path = join(folder, "sees.gguf");
  await writeGguf(path, makeOneFile());
  const received: FromRunner[] = [];
  let tell: (message: ToRunner) => void = () => {};
  const host = { loop: systemLoop(), open: mapFile, chooseBackend };
  const ended = Promise.withResolvers<void>();
  startRunner(
    {
      send: (message) => void received.push(message),
      onMessage: (handle) => void (tell = handle),
      onDisconnect() {},
      exit: () => ended.resolve(),
    },
    { ...host, decodeImage: () => Promise.reject(new Error("no image is decoded here")) },
  );
  const until = async <K extends FromRunner["kind"]>(...kinds: K[]): Promise<Extract<FromRunner, { kind: K }>> => {
    for (;;) {
      const found = received.find(({ kind }) => (kinds as string[]).includes(kind));
      if (found) return found as Extract<FromRunner, { kind: K }>;
      await Bun.sleep(1);
    }
  };
  const load = { template: { go: undefined, prefersGo: undefined }, adapters: [], ctxLen: 256, slots: 1, chunk: 64 };
  const machine = { backend: "cpu", gpuLayers: undefined, gpuMemory: undefined, threads: 1, precise: false };
  tell({ kind: "load", path, cacheDir: undefined, ...load, ...machine });
  expect((await until("ready", "failed")).kind).toBe("ready");
  const close = async (): Promise<void> => {
    tell({ kind: "close" });
    await ended.promise;
  };
  return { tell: (message: ToRunner) => tell(message), until, close };
}

test("a request that is cancelled before its images are read holds no prompt", async () => {
  const { tell, until, close } = await startVision();
  const asked = { kind: "text", text: "What is this?", images: [picture(1)], context: [] } as const;
  const options = { ...SAMPLING_DEFAULTS, num_predict: 1 };
  tell({ kind: "generate", id: 1, asked, holds: true, options, shift: true });
  tell({ kind: "cancel", id: 1 });
  tell({ kind: "forget", id: 1 });
  await Bun.sleep(50);
  tell({ kind: "count", id: 2, asked: { kind: "after", id: 1, text: "" } });
  const reply = await until("count", "refused");
  expect(reply).toMatchObject({ kind: "refused", message: expect.stringContaining("was not held") });
  await close();
});

test("a held prompt includes the ids of the context before it", async () => {
  const { tell, until, close } = await startVision();
  const options = { ...SAMPLING_DEFAULTS, num_predict: 1 };
  const context = [5, 6, 7, 5, 6];
  tell({ kind: "generate", id: 1, asked: { kind: "text", text: "", context }, holds: true, options, shift: true });
  tell({ kind: "count", id: 2, asked: { kind: "after", id: 1, text: "" } });
  expect(await until("count", "refused")).toMatchObject({ kind: "count", tokens: context.length });
  await close();
});
