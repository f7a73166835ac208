/** A runner's process, with the server's own messages. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import type { FromRunner, LoadMessage, ToRunner } from "../../../src/engine/runner/messages.ts";
import { fromWire, toWire } from "../../../src/base/wire.ts";
import { swiftShaderEnv } from "../backends/webgpu/swiftshader.ts";
import { RUNNER } from "../../program.ts";

const load: LoadMessage = {
  kind: "load",
  path: resolve(import.meta.dir, "../../../models/hearth/hearth.gguf"),
  adapters: [],
  template: { go: undefined, prefersGo: undefined },
  backend: "webgpu",
  gpuLayers: undefined,
  gpuMemory: undefined,
  ctxLen: 128,
  slots: 1,
  chunk: 64,
  threads: 1,
  precise: false,
  cacheDir: undefined,
};

test("a runner that gets close while it loads onto a GPU cancels the load and exits", async () => {
  const messages: FromRunner[] = [];
  const child = Bun.spawn([...RUNNER], {
    env: { ...process.env, ...(await swiftShaderEnv()), ORT_DISABLE_TELEMETRY: "1" },
    stdio: ["ignore", "ignore", "inherit"],
    serialization: "json",
    ipc: (received) => void messages.push(fromWire(received as FromRunner)), // the child is this same program
  });
  for (const message of [load, { kind: "close" }] satisfies ToRunner[]) child.send(toWire(message));
  await child.exited;
  expect(messages).toEqual([{ kind: "failed", code: "cancelled", message: "request canceled" }]);
}, 120_000);
