/**
 * Models with a state of each kind: a prompt in pieces and then single tokens gives the same as in one run, and after a
 * restored checkpoint, in its own slot or another, the continuation is bit-identical.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Session } from "../../../../src/engine/program/backend.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel, TOKENS, VOCAB } from "../../architectures/models.ts";
import { nmse } from "../compare.ts";
import { simdLevels } from "./levels.ts";

/** By the kind of state. */
const MODELS = {
  "keys and values": "llama",
  "keys and values of a window": "gemma2",
  "keys and values that layers share": "gemma4",
  "latent keys": "deepseek2",
  "rows of convolutions": "lfm2",
  "a delta rule": "qwen35",
  "a delta rule with a decay of each channel": "kimi-linear",
  "a selective scan": "mamba2",
  "a scan beside keys and values": "nemotron_h",
  "rows that become entries of blocks": "deepseek4",
};
const CUTS = [0, 7, 20];

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-states-"))));
afterAll(() => rm(folder, { recursive: true }));

async function withSession(name: string, precise: boolean, use: (session: Session) => Promise<void>): Promise<void> {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, makeModel(name));
  const gguf = openGguf(path);
  const { backend } = simdLevels[0]!; // the best of this machine
  const load = { ctxLen: 64, slots: 2, precise, threads: 2, cacheDir: undefined };
  const session = await backend.load(loadProgram(gguf), load);
  await use(session);
  session.close();
  gguf.close();
}

/** Logits of some of the tokens, by default in slot 1. */
async function run(session: Session, start: number, end: number, slot = 1): Promise<Float32Array> {
  const tokens = TOKENS.subarray(start, end);
  return (await session.run([{ slot, start, tokens, logits: "all" }])).slice();
}

describe.skipIf(simdLevels.length === 0).each([true, false])("precise: %p", (precise) => {
  // different kernels multiply a row of a prompt and one of decode
  const decodeMax = precise ? 1e-9 : 1e-2;

  for (const [kind, name] of Object.entries(MODELS)) {
    test(`${kind} (${name}): pieces and then single tokens give the results of one run`, async () => {
      await withSession(name, precise, async (session) => {
        const whole = await run(session, 0, TOKENS.length);
        const pieces: number[] = [];
        for (const [i, start] of CUTS.slice(0, -1).entries()) pieces.push(...(await run(session, start, CUTS[i + 1]!)));
        expect(Float32Array.from(pieces)).toEqual(whole.slice(0, pieces.length));
        const single: number[] = [];
        for (let at = CUTS.at(-1)!; at < TOKENS.length; at++) single.push(...(await run(session, at, at + 1)));
        expect(nmse(Float32Array.from(single), whole.slice(pieces.length))).toBeLessThan(decodeMax);
      });
    });

    test(`${kind} (${name}): a restored checkpoint continues with the same bits in two slots`, async () => {
      await withSession(name, precise, async (session) => {
        await run(session, 0, 12);
        const kept = await session.checkpoints?.save(1, 12);
        const first = await run(session, 12, 20);
        const later = await session.checkpoints?.save(1, 20);
        if (kept) session.checkpoints!.restore(1, kept);
        if (kept && later) expect(await session.checkpoints!.save(1, 12, later)).toEqual(kept);
        expect(await run(session, 12, 20)).toEqual(first);
        session.copy({ from: 1, to: 0, length: 12 });
        if (kept) session.checkpoints!.restore(0, kept);
        expect(await run(session, 12, 20, 0)).toEqual(first);
        const other = await run(session, 0, 5, 0);
        expect(other).toEqual(await run(session, 0, 5)); // position 0 resets a slot
        expect(first.length).toBe(8 * VOCAB);
      });
    });
  }
});
