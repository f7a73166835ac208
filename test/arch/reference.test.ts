/**
 * Every reference model whose architecture we have, against llama.cpp's logits: `archs` and `real` in its own layout,
 * `twins` in the other layout that files in circulation have. A new architecture is covered once it is registered.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { archs, loadProgram } from "../../src/arch/index.ts";
import { cpuBackend } from "../../src/backend/cpu.ts";
import { openGguf } from "../../src/files/gguf.ts";
import { repairGguf } from "../../src/gguf/repair/index.ts";
import { addStates, poolingOf, type Pooling } from "../../src/engine/pooling.ts";
import { nmse } from "../backend/compare.ts";
import { golden, goldenTest, hasGolden } from "../golden.ts";

interface Reference {
  readonly name: string;
  readonly gguf: string;
  readonly logits: string;
  readonly tokens: Int32Array;
  readonly nmseMax: number;
}

const ids = (count: number, id: (i: number) => number): Int32Array =>
  Int32Array.from({ length: count }, (_, i) => id(i));
const TOKENS = ids(32, (i) => (i * 37 + 11) % 128);
const REAL_TOKENS = ids(24, (i) => (i * 7 + 3) % 60);
/** Random weights of 4 and 8 bits, which llama.cpp multiplies with activations of 8 bits. */
const QUANTIZED = /gptoss|gpt_oss|gpt-oss/;
const NMSE_MAX = 1e-5;
/** `LLAMA_POOLING_TYPE_RANK` */
const RANK = 4;
const QUANTIZED_NMSE_MAX = 2e-3;

/** More models like those in `archs`: as many as llama.cpp's own test of architectures writes, with their logits. */
const more = process.env["HEARTH_ARCHS"];

const references: readonly Reference[] = [
  ...(hasGolden ? [...inFolder(golden("archs"), TOKENS), ...inFolder(golden("real"), REAL_TOKENS), ...twins()] : []),
  ...(more ? inFolder(more, TOKENS) : []),
];

/** Every NAME.gguf that has its NAME.f32. */
function inFolder(folder: string, tokens: Int32Array): Reference[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".gguf") && existsSync(logitsOf(folder, name)));
  return names.map((file) => {
    const name = `${basename(folder)}/${file.slice(0, -5)}`;
    const nmseMax = QUANTIZED.test(name) ? QUANTIZED_NMSE_MAX : NMSE_MAX;
    return { name, gguf: join(folder, file), logits: logitsOf(folder, file), tokens, nmseMax };
  });
}

function logitsOf(folder: string, file: string): string {
  return join(folder, `${file.slice(0, -5)}.f32`);
}

function twins(): Reference[] {
  const { files } = JSON.parse(readFileSync(golden("twins/index.json"), "utf8")) as {
    files: { family: string; ollama: string; expected: string; suggestedMaxNmse: number }[];
  };
  return files.map(({ family, ollama, expected, suggestedMaxNmse }) => ({
    name: `twins/${family}`,
    gguf: golden(join("twins", ollama)),
    logits: golden(join("twins", expected)),
    tokens: REAL_TOKENS,
    nmseMax: suggestedMaxNmse,
  }));
}

describe.skipIf(references.length === 0)("reference models", () => {
  for (const { name, gguf, logits, tokens, nmseMax } of references) {
    const file = repairGguf(openGguf(gguf));
    const arch = String(file.metadata.get("general.architecture"));
    file.close();
    if (Number(file.metadata.get(`${arch}.pooling_type`)) === RANK && /bert/.test(arch)) continue; // scores texts
    if (!Object.hasOwn(archs, arch)) {
      test(`${name}: ${arch} is refused by name`, () => {
        const model = repairGguf(openGguf(gguf));
        expect(() => loadProgram(model)).toThrow(`got '${arch}'`);
        model.close();
      });
      continue;
    }
    test(`${name}: llama.cpp's logits`, async () => {
      const model = repairGguf(openGguf(gguf));
      const options = { ctxLen: 64, slots: 1, precise: true, threads: 1, cacheDir: undefined };
      const program = loadProgram(model);
      const session = await cpuBackend.load(program, options);
      const expected = new Float32Array(await Bun.file(logits).arrayBuffer());
      const rows = { slot: 0, start: 0, tokens };
      const { dim } = program.states;
      const got =
        expected.length === dim
          ? pool(
              await session.states([{ ...rows, states: "all" }]),
              poolingOf(model, { arch, encoder: !program.logits }),
              dim,
            )
          : await session.run([{ ...rows, logits: "all" }]);
      expect(got.length).toBe(expected.length);
      expect(nmse(got, expected)).toBeLessThan(nmseMax);
      session.close();
      model.close();
    });
  }
});

/** Not normalized. */
function pool(states: Float32Array, pooling: Pooling, dim: number): Float32Array {
  if (pooling === "first") return states.slice(0, dim);
  if (pooling === "last") return states.slice(-dim);
  const sum = new Float64Array(dim);
  addStates(sum, states);
  return Float32Array.from(sum, (value) => (value * dim) / states.length);
}

goldenTest("there are reference models", () => expect(references.length).toBeGreaterThan(50));
