/** The API document's row of every option, on the real server with the embedded model. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(120_000);

const PROMPT = "Tell me a story about a fox.";

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());

async function ask(options: object, more: object = {}): Promise<{ status: number; body: any }> {
  const body = { model: "hearth", prompt: PROMPT, stream: false, options: { num_predict: 24, ...options }, ...more };
  const response = await hearth.post("/api/generate", body);
  return { status: response.status, body: await response.json() };
}

async function textOf(options: object, more: object = {}): Promise<string> {
  const { status, body } = await ask(options, more);
  expect([status, body.error]).toEqual([200, undefined]);
  return body.response;
}

const greedy = (): Promise<string> => textOf({ temperature: 0 });
/** Draws far from the model's first choice, always in the same way. */
const WILD = { temperature: 3, top_k: 0, top_p: 1, seed: 5 };

const pidOf = async (): Promise<number> => (await hearth.runnerPids())[0]!;

describe("options.* that choose tokens", () => {
  test("temperature: 0 always chooses the likeliest token", async () => {
    expect(await textOf({ temperature: 0, seed: 1 })).toBe(await textOf({ temperature: 0, seed: 2 }));
    expect(await textOf(WILD)).not.toBe(await greedy());
  });

  test("seed: equal seeds give equal output, and another seed gives another", async () => {
    expect(await textOf(WILD)).toBe(await textOf(WILD));
    expect(await textOf({ ...WILD, seed: 6 })).not.toBe(await textOf(WILD));
  });

  for (const [name, value] of [
    ["top_k", 1],
    ["top_p", 0],
    ["min_p", 1],
    ["tfs_z", 0],
  ] as const) {
    test(`${name}: the narrowest value leaves only the likeliest token`, async () => {
      expect(await textOf({ ...WILD, [name]: value })).toBe(await greedy());
    });
  }

  for (const [name, value] of [
    ["typical_p", 0.1],
    ["mirostat", 1],
    ["mirostat", 2],
  ] as const) {
    test(`${name}: ${value} changes the output, which is the same for the same seed`, async () => {
      const options = { ...WILD, [name]: value };
      const text = await textOf(options);
      expect(text).not.toBe(await textOf(WILD));
      expect(await textOf(options)).toBe(text);
    });
  }

  test("mirostat_tau and mirostat_eta: set the target surprise and the learning rate", async () => {
    const base = { ...WILD, mirostat: 2, num_predict: 40 };
    expect(await textOf({ ...base, mirostat_tau: 0.1 })).not.toBe(await textOf({ ...base, mirostat_tau: 8 }));
    expect(await textOf({ ...base, mirostat_eta: 0 })).not.toBe(await textOf({ ...base, mirostat_eta: 0.9 }));
    expect(await textOf({ ...WILD, mirostat_tau: 0.1, mirostat_eta: 0.9 })).toBe(await textOf(WILD)); // off
  });

  for (const [name, value] of [
    ["repeat_penalty", 5],
    ["presence_penalty", 50],
    ["frequency_penalty", 50],
  ] as const) {
    test(`${name}: makes generated tokens less likely; repeat_last_n 0 turns it off`, async () => {
      const options = { temperature: 0, [name]: value, repeat_last_n: -1, num_predict: 40 };
      const { body } = await ask(options, { logprobs: true });
      expect(body.response).not.toBe(await textOf({ temperature: 0, num_predict: 40 }));
      if (name !== "repeat_penalty") {
        const ids = body.context.slice(body.prompt_eval_count);
        expect(new Set(ids).size).toBe(ids.length); // no token occurs twice
      }
      expect(await textOf({ ...options, repeat_last_n: 0 })).toBe(await textOf({ temperature: 0, num_predict: 40 }));
    });
  }

  test("penalize_newline: false exempts line feeds from the penalties", async () => {
    const asked = { raw: true, prompt: "\n" };
    const reward = { temperature: 0, presence_penalty: -1000, num_predict: 1 }; // rewards repeated tokens
    expect(await textOf({ temperature: 0, num_predict: 1 }, asked)).not.toBe("\n");
    expect(await textOf(reward, asked)).toBe("\n");
    expect(await textOf({ ...reward, penalize_newline: true }, asked)).toBe("\n");
    expect(await textOf({ ...reward, penalize_newline: false }, asked)).not.toBe("\n");
  });

  test("stop: ends the answer before the first of the texts, and replaces the model's own list", async () => {
    const whole = await greedy();
    const word = whole.split(" ")[3]!;
    const { body } = await ask({ temperature: 0, stop: ["never said", ` ${word}`] });
    expect(body.response).toBe(whole.slice(0, whole.indexOf(` ${word}`)));
    expect(body.done_reason).toBe("stop");
    const single = await ask({ stop: "text" });
    expect([single.status, single.body.error]).toEqual([400, 'option "stop" must be of type array']);
    const mixed = await ask({ stop: ["a", 1] });
    expect([mixed.status, mixed.body.error]).toEqual([400, 'option "stop" must be of an array of strings']);
  });
});

describe("options.* that set lengths", () => {
  test("num_predict: limits the tokens; −1 runs until the model stops, −2 until the context is full", async () => {
    for (const num_predict of [1, 5]) {
      expect((await ask({ num_predict })).body).toMatchObject({ eval_count: num_predict, done_reason: "length" });
    }
    expect((await ask({ num_predict: 0 })).body).toMatchObject({ response: "", done_reason: "length" });
    expect((await ask({ num_predict: -1, temperature: 0 })).body.done_reason).toBe("stop");
    const endless = { format: { type: "array", items: { type: "integer" }, minItems: 500 } };
    const { body } = await ask({ num_predict: -2, num_ctx: 64, temperature: 0 }, endless);
    expect(body.done_reason).toBe("length");
    expect(body.prompt_eval_count + body.eval_count).toBeLessThanOrEqual(65);
  });

  test("num_ctx: sets the context length, up to the length that the model was trained for", async () => {
    const length = async (num_ctx: number): Promise<number> => {
      await ask({ num_ctx, num_predict: 1 });
      const { models } = (await (await fetch(`${hearth.url}/api/ps`)).json()) as { models: any[] };
      return models[0].context_length;
    };
    expect(await length(256)).toBe(256);
    expect(await length(1_000_000)).toBe(2048);
    expect(await length(1)).toBe(4);
  });

  test("num_keep: keeps that many tokens at the start of a cut prompt; −1 keeps as many as possible", async () => {
    const words = Array.from({ length: 200 }, (_, i) => `word${i}`).join(" ");
    const response = await hearth.post("/api/tokenize", { model: "hearth", content: words });
    const { tokens } = (await response.json()) as { tokens: number[] };
    const kept = async (num_keep: number): Promise<number> => {
      const options = { num_keep, num_ctx: 128, temperature: 0, num_predict: 1 };
      const { body } = await ask(options, { template: "{{ .Prompt }}", prompt: words });
      return tokens.findIndex((id, i) => body.context[i] !== id);
    };
    expect(await kept(0)).toBeLessThan(5); // the tail may begin like the prompt
    expect(await kept(10)).toBeWithin(10, 15);
    expect(await kept(40)).toBeWithin(40, 45);
    expect(await kept(-1)).toBeWithin(124, 128);
  });
});

describe("options.* that belong to loading", () => {
  for (const [name, value] of [
    ["num_batch", 16],
    ["num_thread", 1],
  ] as const) {
    test(`${name}: another value reloads the model, and the answer stays the same`, async () => {
      const text = await greedy();
      const pid = await pidOf();
      expect(await textOf({ temperature: 0, [name]: value })).toBe(text);
      expect(await pidOf()).not.toBe(pid);
      const second = await pidOf();
      expect(await greedy()).toBe(text); // an option of one request does not affect the next
      expect(await pidOf()).toBe(second);
    });
  }

  for (const [name, values] of [
    ["num_gpu", [0, 99, -1]],
    ["main_gpu", [0, 1]],
    ["use_mmap", [true, false]],
    ["use_mlock", [true, false]],
    ["numa", [true, false]],
    ["low_vram", [true, false]],
    ["vocab_only", [true, false]],
  ] as const) {
    test(`${name}: is accepted, and changes neither the answer nor the process`, async () => {
      const text = await greedy();
      const pid = await pidOf();
      for (const value of values) expect(await textOf({ temperature: 0, [name]: value })).toBe(text);
      expect(await pidOf()).toBe(pid);
    });
  }
});

describe("options of the wrong type", () => {
  const INTEGERS =
    "num_keep seed num_predict top_k repeat_last_n mirostat num_ctx num_batch num_gpu main_gpu num_thread";
  const NUMBERS =
    "top_p min_p tfs_z typical_p temperature repeat_penalty presence_penalty frequency_penalty " +
    "mirostat_tau mirostat_eta";
  const BOOLEANS = "penalize_newline numa low_vram vocab_only use_mmap use_mlock";

  for (const [names, type, wrong] of [
    [INTEGERS, "integer", "1"],
    [NUMBERS, "float32", "1"],
    [BOOLEANS, "boolean", 1],
  ] as const) {
    test(`${type}: the error names the option and the type`, async () => {
      for (const name of names.split(" ")) {
        const { status, body } = await ask({ [name]: wrong });
        expect([status, body.error]).toEqual([400, `option "${name}" must be of type ${type}`]);
      }
    });
  }

  test("null counts as absent, a fraction is truncated to an integer, and an unknown option is ignored", async () => {
    const text = await greedy();
    expect(await textOf({ temperature: 0, top_k: null, seed: 3.9, colour: "red" })).toBe(text);
    expect((await ask({ num_predict: 3.9 })).body.eval_count).toBe(3);
  });
});
