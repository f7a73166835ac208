import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../src/base/errors.ts";
import { jsonNumber } from "../../src/server/http/json-pieces.ts";
import { pause, threeValues } from "./fakes.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => {
  harness.runtime.embedding = threeValues;
  harness.runtime.embedRequests.length = 0;
});

const embed = (body: object) => harness.post("/api/embed", { model: "m", ...body });
const asked = () => harness.runtime.embedRequests.at(-1)!;

describe("POST /api/embed", () => {
  test("a text gives one vector, in the shortest digits of float32", async () => {
    const response = await embed({ input: "hi" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.text()).toBe(
      '{"model":"m","embeddings":[[2,0.33333334,-0.5]],"total_duration":5000000,"load_duration":1000000,' +
        '"prompt_eval_count":2}',
    );
  });

  test("a list gives one vector for each text, also for an empty one", async () => {
    const reply = (await (await embed({ input: ["a", "", "ccc"] })).json()) as { embeddings: number[][] };
    expect(reply.embeddings.map(([first]) => first)).toEqual([1, 0, 3]);
    expect(asked().inputs).toEqual(["a", "", "ccc"]);
  });

  test("a missing or empty input loads the model", async () => {
    for (const body of [{}, { input: "" }, { input: [] }, { input: null }]) {
      const response = await embed(body);
      expect([response.status, await response.text()]).toEqual([200, '{"model":"m","embeddings":[]}']);
      expect(asked().inputs).toEqual([]);
    }
  });

  test("truncate, dimensions, options and keep_alive reach the model", async () => {
    await embed({ input: "a", truncate: false, dimensions: 2, options: { num_ctx: 64 }, keep_alive: "1m" });
    expect(asked()).toMatchObject({ truncate: false, dimensions: 2, options: { num_ctx: 64 }, keepAliveMs: 60_000 });
    await embed({ input: "a" });
    expect("truncate" in asked()).toBe(false);
  });

  test.each([
    [{ input: 3 }, 400, "invalid input type"],
    [{ input: { a: 1 } }, 400, "invalid input type"],
    [{ input: ["a", 1] }, 400, "invalid input type"],
    [{ input: [[1, 2]] }, 400, "invalid input type"],
    [{ input: "a", model: "" }, 404, "model '' not found"],
    [{ input: "a", model: "a b!" }, 400, "invalid model name"],
    [{ input: "a", model: "nope" }, 404, 'model "nope" not found, try pulling it first'],
    [{ input: "a", dimensions: "3" }, 400, 'dimensions: expected a whole number, got "3"'],
    [{ input: "a", options: { num_ctx: "x" } }, 400, 'option "num_ctx" must be of type integer'],
  ])("%j is refused with %i", async (body, status, error) => {
    const response = await embed(body);
    expect([response.status, await response.json()]).toEqual([status, { error }]);
  });

  test("an error of the model keeps its status", async () => {
    harness.runtime.embedding = async () => {
      throw new AppError("bad_request", "the input length exceeds the context length");
    };
    const response = await embed({ input: "a", truncate: false });
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: "the input length exceeds the context length" },
    ]);
  });

  test("a client that hangs up stops the embedding", async () => {
    const stopped = Promise.withResolvers<string>();
    harness.runtime.embedding = async ({ signal }) => {
      await pause(60_000, signal).catch((error: AppError) => stopped.resolve(error.code));
      throw new AppError("cancelled", "request canceled");
    };
    const { url } = harness.listen();
    const gone = new AbortController();
    const body = JSON.stringify({ model: "m", input: "a" });
    const reply = fetch(`${url}/api/embed`, { method: "POST", body, signal: gone.signal });
    reply.catch(() => {});
    while (harness.runtime.embedRequests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    gone.abort();
    expect(await stopped.promise).toBe("cancelled");
  });
});

describe("POST /api/embeddings", () => {
  const embeddings = (body: object) => harness.post("/api/embeddings", body);

  test("a prompt gives one vector, and is not truncated to the context", async () => {
    const response = await embeddings({ model: "m", prompt: "hi" });
    expect(await response.json()).toEqual({ embedding: [2, Math.fround(1 / 3), -0.5] });
    expect(asked()).toMatchObject({ inputs: ["hi"], truncate: false });
  });

  test("an empty or missing prompt loads the model", async () => {
    expect(await (await embeddings({ model: "m", keep_alive: 0 })).json()).toEqual({ embedding: [] });
    expect(asked()).toMatchObject({ inputs: [], keepAliveMs: 0 });
  });

  test.each([
    [{ prompt: "a" }, 400, "model is required"],
    [{ model: "nope", prompt: "a" }, 404, 'model "nope" not found, try pulling it first'],
    [{ model: "m", prompt: 1 }, 400, "prompt: expected a string, got 1"],
  ])("%j is refused with %i", async (body, status, error) => {
    const response = await embeddings(body);
    expect([response.status, await response.json()]).toEqual([status, { error }]);
  });
});

test("a float32 is written in the fewest digits that read back as it", () => {
  const fewest = (value: number): number => {
    for (let digits = 1; digits < 9; digits++) {
      const short = Number(value.toPrecision(digits));
      if (Math.fround(short) === value) return String(short).length;
    }
    return String(Number(value.toPrecision(9))).length;
  };
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const written = jsonNumber(value);
      expect(Math.fround(written)).toBe(value);
      if (!Number.isInteger(value)) expect(String(written).length).toBeLessThanOrEqual(fewest(value));
    }),
    { numRuns: 2000 },
  );
});
