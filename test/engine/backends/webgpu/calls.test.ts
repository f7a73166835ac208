/** WebGPU calls of a decode step: each takes time of the host, which no GPU shortens. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel, TOKENS } from "../../architectures/models.ts";
import { sharedWebGpu } from "./shared.ts";

setDefaultTimeout(120_000);

/** Steps before the counted one: from the third on, a step whose token the device chooses is submitted ahead. */
const STEPS = 5;

/** The calls of one step, by name. */
async function callsOf(name: string, k: number): Promise<Record<string, number>> {
  const gpu = await sharedWebGpu();
  const folder = await mkdtemp(join(tmpdir(), "hearth-calls-"));
  const file = join(folder, "model.gguf");
  await writeGguf(file, makeModel(name));
  const gguf = openGguf(file);
  const options = { ctxLen: 48, slots: 1, precise: false, threads: 1, cacheDir: undefined };
  const session = await gpu.backend.load(loadProgram(gguf), options);
  const request = { k, masked: new Int32Array(0) };
  let token = TOKENS[0]!;
  let before: Record<string, number> = {};
  for (let at = 0; at <= STEPS; at++) {
    if (at === STEPS) before = (await gpu.tally()).calls;
    const row = { slot: 0, start: at, tokens: Int32Array.of(token), logits: "last", request } as const;
    token = (await session.topK!.run([row])).topK[0]!.ids[0]!;
  }
  const { calls } = await gpu.tally();
  session.close();
  gguf.close();
  await rm(folder, { recursive: true });
  const more = Object.entries(calls).map(([each, count]) => [each, count - (before[each] ?? 0)] as const);
  return Object.fromEntries(more.filter(([, count]) => count > 0));
}

/** Calls around the dispatches: the device chooses the token, or the host draws it from candidates. */
const AROUND = {
  both: { writeBuffer: 1, submit: 1, beginComputePass: 2, end: 2, mapAsync: 1, getMappedRange: 1, unmap: 1 },
  chosen: { createCommandEncoder: 1, finish: 1, copyBufferToBuffer: 2 },
  drawn: { createCommandEncoder: 2, finish: 2, copyBufferToBuffer: 1 },
};

for (const [name, dispatches, pipelines] of [
  ["llama", 16, 15],
  ["qwen3moe", 20, 17],
] as const) {
  test(`${name}: a step calls WebGPU at most three times a dispatch, and 13 or 14 times besides`, async () => {
    const each = { setPipeline: pipelines, setBindGroup: dispatches, dispatchWorkgroups: dispatches };
    expect(await callsOf(name, 1)).toEqual({ ...AROUND.both, ...AROUND.chosen, ...each });
    expect(await callsOf(name, 40)).toEqual({ ...AROUND.both, ...AROUND.drawn, ...each });
  });
}
