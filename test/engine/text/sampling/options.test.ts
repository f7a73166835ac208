import { expect, test } from "bun:test";
import { AppError } from "../../../../src/base/errors.ts";
import { parseOptions } from "../../../../src/engine/text/sampling/options.ts";

function failure(value: unknown): { code: string; message: string } {
  try {
    parseOptions(value);
  } catch (error) {
    if (error instanceof AppError) return { code: error.code, message: error.message };
  }
  return { code: "none", message: "nothing was thrown" };
}

test("options are read with their types, unknown keys are returned, and obsolete ones dropped", () => {
  const given = {
    temperature: 0.5,
    top_k: 20.9,
    seed: 7,
    stop: ["a"],
    use_mmap: false,
    numa: true,
    vocab_only: false,
    colour: 1,
  };
  expect(parseOptions(given)).toEqual({
    options: { temperature: 0.5, top_k: 20, seed: 7, stop: ["a"], use_mmap: false },
    unknown: ["colour"],
  });
});

test("every option of Ollama's list is known", () => {
  const integers =
    "num_keep seed num_predict top_k repeat_last_n mirostat num_ctx num_batch num_gpu main_gpu num_thread";
  const numbers =
    "top_p min_p tfs_z typical_p temperature repeat_penalty presence_penalty frequency_penalty " +
    "mirostat_tau mirostat_eta";
  const booleans = "penalize_newline numa low_vram vocab_only use_mmap use_mlock";
  const all: Record<string, unknown> = { stop: ["x"] };
  for (const key of `${integers} ${numbers}`.split(" ")) all[key] = 1;
  for (const key of booleans.split(" ")) all[key] = true;
  expect(parseOptions(all).unknown).toEqual([]);
});

test("null and absent options are not set", () => {
  expect(parseOptions({ temperature: null, stop: null })).toEqual({ options: {}, unknown: [] });
  expect(parseOptions(undefined)).toEqual({ options: {}, unknown: [] });
  expect(parseOptions(null)).toEqual({ options: {}, unknown: [] });
});

test.each([
  [{ temperature: "hot" }, 'option "temperature" must be of type float32'],
  [{ top_p: 1e39 }, 'option "top_p" must be of type float32'],
  [{ min_p: NaN }, 'option "min_p" must be of type float32'],
  [{ top_k: "40" }, 'option "top_k" must be of type integer'],
  [{ diffusion_steps: -1 }, 'option "diffusion_steps" must be 0 or more, got -1'],
  [{ seed: Infinity }, 'option "seed" must be of type integer'],
  [{ use_mmap: 1 }, 'option "use_mmap" must be of type boolean'],
  [{ numa: "yes" }, 'option "numa" must be of type boolean'],
  [{ stop: "end" }, 'option "stop" must be of type array'],
  [{ logit_bias: [[5, 1]] }, 'option "logit_bias": expected an object, got an array'],
  [{ logit_bias: "413:high" }, 'option "logit_bias": expected numbers from -100 to 100, got "high" for token 413'],
  [{ logit_bias: "end" }, 'option "logit_bias": expected ids of tokens as keys, got "end"'],
  [{ logit_bias: "413" }, 'option "logit_bias": expected numbers from -100 to 100, got "" for token 413'],
  [{ logit_bias: { "-1": 1 } }, 'option "logit_bias": expected ids of tokens as keys, got "-1"'],
  [{ logit_bias: { "1": "2" } }, 'option "logit_bias": expected numbers from -100 to 100, got "2" for token 1'],
  [
    {
      logit_bias: Object.fromEntries(Array.from({ length: 1025 }, (_, id) => [id, 1])),
    },
    'option "logit_bias": expected at most 1024 tokens, got 1025',
  ],
  [{ stop: ["a", 1] }, 'option "stop" must be of an array of strings'],
])("%j is refused with the expected error text", (options, message) => {
  expect(failure(options)).toEqual({ code: "bad_request", message });
});

test.each([
  ["413:100, 7 : -2.5,", { "413": 100, "7": -2.5 }],
  ["", {}],
])("logit biases as the text %j, as Open WebUI sends them", (text, biases) => {
  expect(parseOptions({ logit_bias: text }).options).toEqual({ logit_bias: biases });
});

test("integers truncate toward zero, and values out of range are clamped", () => {
  const { options } = parseOptions({ num_predict: -1.9, seed: -0.5, top_k: -3, mirostat: 7, num_ctx: 1e18 });
  expect(options).toEqual({ num_predict: -1, seed: 0, top_k: 0, mirostat: 0, num_ctx: 2 ** 31 - 1 });
});

test("seeds may exceed 2^53 and are clamped to 2^63", () => {
  const seedOf = (seed: number) => parseOptions({ seed }).options.seed;
  expect(seedOf(2 ** 60 + 256)).toBe(2 ** 60 + 256);
  expect(seedOf(1e300)).toBe(2 ** 63);
});

test("`constructor` and `toString` are unknown options, and options that are no object are refused", () => {
  expect(parseOptions({ constructor: 1, toString: 2 }).unknown).toEqual(["constructor", "toString"]);
  expect(failure([1]).code).toBe("bad_request");
  expect(failure("x").code).toBe("bad_request");
});

test("samplers are a list of llama.cpp's names, or its letters", () => {
  const order = (samplers: unknown) => parseOptions({ samplers }).options.samplers;
  expect(order(["top_k", "Min-P", "nucleus", "temp", "typ", "topnsigma", "penalties", "dry", "xtc"])).toEqual([
    "top_k",
    "min_p",
    "top_p",
    "temperature",
    "typ_p",
    "top_n_sigma",
    "penalties",
    "dry",
    "xtc",
  ]);
  expect(order("edskypmxt")).toHaveLength(9);
  expect(order([])).toEqual([]);
  for (const wrong of [["top_k", "constructor"], ["infill"], "q", 7, Array(33).fill("top_k"), [{}]])
    expect(() => order(wrong)).toThrow('option "samplers": expected');
  const breakers = Array(33).fill("x");
  expect(() => parseOptions({ dry_sequence_breakers: breakers })).toThrow("at most 32 strings");
});
