/** Adapters that rows choose, on the reference: as if they were applied to the whole model; and refusals. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkOffer, loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import type { Program, RowAdapter, Rows, Session } from "../../../src/engine/program/backend.ts";
import { differences, nmse } from "../backends/compare.ts";
import { failure } from "../formats/gguf/fixture.ts";
import { makeAdapter } from "./adapters.ts";
import { CTX_LEN, makeModel, TOKENS } from "./models.ts";
import { makeOffered, type Offered } from "./offered.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-offered-"))));
afterAll(() => rm(folder, { recursive: true }));

const load = (program: Program): Promise<Session> =>
  cpuBackend.load(program, { ctxLen: CTX_LEN, slots: 3, precise: true, threads: 1, cacheDir: undefined });

const rows = (slot: number, adapters: readonly RowAdapter[], logits: Rows["logits"] = "all"): Rows => {
  return { slot, start: 0, tokens: TOKENS, logits, adapters };
};

describe.each(["llama", "llama-tied-factors", "phi3", "gemma3", "qwen3moe"])("%s", (name) => {
  let offered: Offered;
  let session: Session;
  beforeAll(async () => {
    offered = await makeOffered({ folder, name });
    session = await load(offered.program);
  });
  afterAll(() => {
    session.close();
    offered.close();
  });

  const chosen = async (...adapters: readonly RowAdapter[]): Promise<Float32Array> =>
    (await session.run([rows(0, adapters)])).slice();

  test("rows with adapters have the logits of a model loaded with these adapters", async () => {
    for (const own of [[], [0], [1], [2], [3], [0, 1], [0, 2, 3]]) {
      const applied = loadProgram(
        offered.gguf,
        own.map((index) => offered.adapters[index]!),
      );
      const expected = await (await load(applied)).run([rows(0, [], "all")]);
      const logits = await chosen(...own.map((adapter) => ({ adapter, scale: 1 })));
      expect(nmse(logits, expected), `adapters ${own.join()}`).toBeLessThan(1e-10);
    }
  });

  test("the scale multiplies the change: 0 gives none, and -1, 1 and 2 differ", async () => {
    const plain = await chosen();
    expect(nmse(await chosen({ adapter: 0, scale: 0 }), plain)).toBeLessThan(1e-12);
    const found = [plain];
    for (const scale of [-1, 1, 2]) found.push(await chosen({ adapter: 0, scale }));
    for (const [i, each] of found.entries()) {
      for (const other of found.slice(i + 1)) expect(nmse(each, other)).toBeGreaterThan(1e-3);
    }
  });

  test("rows of one run may have different adapters", async () => {
    const choices = [
      [{ adapter: 1, scale: 1 }],
      [],
      [
        { adapter: 0, scale: 0.5 },
        { adapter: 2, scale: 1 },
      ],
    ];
    const batch = choices.map((adapters, slot) => rows(slot, adapters, slot === 1 ? "last" : "all"));
    const logits = (await session.run(batch)).slice();
    const alone: Float32Array[] = [];
    for (const adapters of choices) alone.push(await chosen(...adapters));
    const vocab = offered.program.shape.vocabSize;
    const parts = [alone[0]!, alone[1]!.slice(-vocab), alone[2]!];
    let at = 0;
    for (const part of parts) {
      expect(differences(logits.subarray(at, at + part.length), part)).toBe(0);
      at += part.length;
    }
  });
});

describe("offered adapters", () => {
  const refusal = async (name: string, targets: RegExp, base = name): Promise<string> => {
    const paths = await Promise.all(
      [makeModel(base), makeAdapter(makeModel(name), { rank: 4, alpha: 8, seed: 1, targets })].map(write),
    );
    const [gguf, adapter] = paths.map((path) => openGguf(path));
    const error = failure(() => checkOffer(loadProgram(gguf!), gguf!, adapter!));
    for (const file of [gguf, adapter]) file?.close();
    return error;
  };
  async function write(model: WriteModel): Promise<string> {
    const path = join(folder, `${crypto.randomUUID()}.gguf`);
    await writeGguf(path, model);
    return path;
  }

  test("are refused if they change an embedding", async () => {
    expect(await refusal("llama", /token_embd|attn_q/)).toMatch(
      /^unsupported: .*'token_embd.weight.lora_a': expected a matrix that 'llama' multiplies each row by/,
    );
  });

  test("are refused if they change experts", async () => {
    expect(await refusal("qwen3moe", /exps/)).toMatch(/^unsupported: .*exps.weight.lora_a': expected a matrix/);
  });

  test("are refused if they belong to another architecture", async () => {
    expect(await refusal("qwen3", /attn_q/, "llama")).toMatch(/^bad_file: .*expected 'llama', that of the model/);
  });

  test("are refused in rows by an unknown index, twice, or with NaN as scale", async () => {
    const offered = await makeOffered({ folder, name: "llama" });
    const session = await load(offered.program);
    const run = (...adapters: readonly RowAdapter[]) => session.run([rows(0, adapters)]);
    await expect(run({ adapter: 4, scale: 1 })).rejects.toThrow("slot 0: adapter 4 of 4");
    await expect(run({ adapter: 1, scale: 1 }, { adapter: 1, scale: 2 })).rejects.toThrow("adapter 1 twice");
    await expect(run({ adapter: 1, scale: NaN })).rejects.toThrow("adapter 1 with scale NaN");
    session.close();
    offered.close();
  });
});
