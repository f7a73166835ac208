/**
 * The architectures of llama.cpp's own test, half of them by the seed, with weights that make attention sharp, against
 * its logits; and proof that these logits reveal a wrong rotation and a lost window, for some of those
 * (`bench/mutations.ts` breaks all).
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Program } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { drawn } from "../../seed.ts";
import { nmse } from "../backends/compare.ts";
import { likeLlamaCpp } from "./like-llama-cpp.ts";
import { CTX_LEN } from "./models.ts";
import { MUTATIONS } from "./mutations.ts";
import { makeOutline, OUTLINE_TOKENS, readOutlines } from "./outlines.ts";

const NMSE_MAX = 1e-6;

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-outlines-"))));
afterAll(() => rm(folder, { recursive: true }));

/** Error of the last logits against llama.cpp's. */
async function errorOf(program: Program, expected: Float32Array): Promise<number> {
  const options = { ctxLen: CTX_LEN, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const session = await cpuBackend.load(program, options);
  const logits = await session.run([{ slot: 0, start: 0, tokens: OUTLINE_TOKENS, logits: "all" }]);
  const error = nmse(logits.slice(-expected.length), expected);
  session.close();
  return error;
}

const [wrongTurn, lostWindow] = MUTATIONS;
/** A run compares half of them. */
const all = [...readOutlines()];
const outlines = drawn("outlines", all, Math.ceil(all.length / 2));
const broken = new Set(drawn("outlines that are broken", outlines, 6));

for (const each of outlines) {
  const [name, outline] = each;
  const mutations = broken.has(each) ? [wrongTurn, lostWindow] : [];
  test(`${name} has llama.cpp's logits${mutations.length > 0 ? ", and other logits with a wrong rotation or window" : ""}`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeOutline(name, outline));
    const expected = new Float32Array(await Bun.file(join(import.meta.dir, "logits", `${name}.f32`)).arrayBuffer());
    const gguf = openGguf(path);
    const program = likeLlamaCpp(loadProgram(gguf));
    expect(await errorOf(program, expected)).toBeLessThan(NMSE_MAX);
    for (const mutation of mutations) {
      const wrong = mutation.apply(program);
      if (wrong) expect(await errorOf(wrong, expected)).toBeGreaterThan(NMSE_MAX);
    }
    gguf.close();
    await rm(path);
  });
}
