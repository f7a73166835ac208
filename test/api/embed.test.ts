/** The rows of the API that speak of embedding, against the real server: an encoder, and the embedded model. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeGguf } from "../../src/engine/formats/files/write.ts";
import { cosine } from "../engine/architectures/embed-on.ts";
import { encoders, makeEncoder, wordOf } from "../engine/architectures/encoders.ts";
import { eventually, startHearth, type Hearth } from "../e2e/hearth.ts";
import { golden, goldenTest } from "../golden.ts";

setDefaultTimeout(60_000);

const CTX_LEN = encoders["bert-mean"].ctxLen;
const LONG = Array.from({ length: 500 }, (_, i) => wordOf(i % 40)).join(" ");

let hearth: Hearth;
let folder = "";
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "hearth-embed-"));
  const path = join(folder, "bert.gguf");
  await writeGguf(path, makeEncoder(encoders["bert-mean"]));
  hearth = await startHearth({ env: { HEARTH_IMPORT_DIRS: folder } });
  await create("bert", path);
});
afterAll(async () => {
  await hearth.stop();
  rmSync(folder, { recursive: true });
});

async function create(model: string, path: string): Promise<void> {
  const response = await hearth.post("/api/create", { model, modelfile: `FROM ${path}`, stream: false });
  expect(await response.json()).toMatchObject({ status: "success" });
}

interface Reply {
  readonly model: string;
  readonly embeddings: number[][];
  readonly [field: string]: unknown;
}

async function embed(body: object): Promise<Reply> {
  const response = await hearth.post("/api/embed", { model: "bert", ...body });
  expect([response.status, response.statusText]).toEqual([200, "OK"]);
  return (await response.json()) as Reply;
}

async function failure(path: string, body: object): Promise<unknown[]> {
  const response = await hearth.post(path, { model: "bert", ...body });
  return [response.status, ((await response.json()) as { error: string }).error];
}

interface Loaded {
  readonly name: string;
  readonly expires_at: string;
}

const loadedModels = async (): Promise<string[]> => {
  const response = await fetch(`${hearth.url}/api/ps`);
  return ((await response.json()) as { models: { name: string }[] }).models.map(({ name }) => name);
};

describe("POST /api/embed", () => {
  test("the answer has one vector per input, and model, durations and prompt_eval_count", async () => {
    const reply = await embed({ input: ["hello world", "the lazy dog"] });
    expect(Object.keys(reply)).toEqual(["model", "embeddings", "total_duration", "load_duration", "prompt_eval_count"]);
    expect(reply.model).toBe("bert");
    expect(reply.embeddings.map((vector) => vector.length)).toEqual([64, 64]);
    for (const vector of reply.embeddings) expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
    for (const key of ["total_duration", "load_duration", "prompt_eval_count"]) {
      expect([key, Number.isInteger(reply[key]) && Number(reply[key]) > 0]).toEqual([key, true]);
    }
  });

  test("input: a text gets the same vector alone as in a list", async () => {
    const { embeddings } = await embed({ input: ["the lazy dog", "over", ""] });
    const [alone] = (await embed({ input: "the lazy dog" })).embeddings;
    expect(cosine(alone!, embeddings[0]!)).toBeGreaterThan(0.99999);
    expect(cosine(embeddings[1]!, embeddings[0]!)).toBeLessThan(0.999);
    expect(embeddings[2]!.every(Number.isFinite)).toBe(true);
  });

  test("input: the vectors of 300 texts keep the order of the texts", async () => {
    const input = Array.from({ length: 300 }, (_, i) => `${wordOf(i % 40)} ${"dog ".repeat(i % 7)}${i}`);
    const { embeddings } = await embed({ input });
    expect(embeddings.length).toBe(300);
    for (const i of [0, 123, 299]) {
      const [alone] = (await embed({ input: input[i] })).embeddings;
      expect(cosine(alone!, embeddings[i]!)).toBeGreaterThan(0.99999);
    }
  });

  test("truncate: an input that is too long loses its end by default", async () => {
    const { embeddings, prompt_eval_count } = await embed({ input: LONG });
    expect(prompt_eval_count).toBe(CTX_LEN);
    const other = `${LONG.split(" ").slice(0, 200).join(" ")} dog`;
    expect(cosine(embeddings[0]!, (await embed({ input: other })).embeddings[0]!)).toBeGreaterThan(0.99999);
  });

  test("truncate: false makes an input beyond the context length an error, alone or in a list", async () => {
    const error = [400, "the input length exceeds the context length"];
    expect(await failure("/api/embed", { input: LONG, truncate: false })).toEqual(error);
    expect(await failure("/api/embed", { input: ["a", LONG], truncate: false })).toEqual(error);
    expect((await embed({ input: "short", truncate: false })).embeddings.length).toBe(1);
  });

  test("options: num_ctx truncates an input; a value that is too small is an error", async () => {
    const cut = await embed({ input: "dog over the hill", options: { num_ctx: 3 } });
    expect(cut.prompt_eval_count).toBe(3);
    expect(cosine(cut.embeddings[0]!, (await embed({ input: "dog" })).embeddings[0]!)).toBeGreaterThan(0.99999);
    const error = [400, "input after truncation exceeds maximum context length"];
    expect(await failure("/api/embed", { input: "dog over", options: { num_ctx: 1 } })).toEqual(error);
  });

  test("dimensions: shortens the vector and normalizes it again; a larger number changes nothing", async () => {
    const [whole] = (await embed({ input: "dog" })).embeddings;
    const [cut] = (await embed({ input: "dog", dimensions: 8 })).embeddings;
    expect(cut!.length).toBe(8);
    expect(Math.hypot(...cut!)).toBeCloseTo(1, 5);
    expect(cosine(cut!, whole!.slice(0, 8))).toBeGreaterThan(0.99999);
    expect((await embed({ input: "dog", dimensions: 999 })).embeddings[0]).toEqual(whole!);
  });

  test("a request without input loads the model, and keep_alive 0 unloads it", async () => {
    expect(await embed({ input: [] })).toEqual({ model: "bert", embeddings: [] });
    expect(await loadedModels()).toContain("bert:latest");
    await embed({ input: "", keep_alive: 0 });
    expect(await eventually(async () => !(await loadedModels()).includes("bert:latest"), 20_000)).toBe(true);
  });

  test("a generating model computes embeddings too, also while it generates", async () => {
    const generating = hearth.post("/api/generate", { model: "hearth", prompt: "Tell me a story.", stream: false });
    const { embeddings } = await embed({ model: "hearth", input: ["a small fox", "a little fox", LONG] });
    expect(embeddings.map((vector) => vector.length === embeddings[0]!.length)).toEqual([true, true, true]);
    expect(((await (await generating).json()) as { done: boolean }).done).toBe(true);
    const [again] = (await embed({ model: "hearth", input: "a small fox" })).embeddings;
    expect(cosine(again!, embeddings[0]!)).toBeGreaterThan(0.99999);
  });

  test("a client that disconnects stops the computation", async () => {
    const gone = new AbortController();
    const input = Array.from({ length: 400 }, (_, i) => `${LONG} ${i}`);
    const reply = hearth.post("/api/embed", { model: "hearth", input }, gone.signal);
    reply.catch(() => {});
    await eventually(async () => (await loadedModels()).includes("hearth:latest"), 20_000);
    gone.abort();
    const isSeen = (): boolean => hearth.log().some((line) => line.includes("/api/embed") && line.includes("499"));
    expect(await eventually(isSeen, 30_000)).toBe(true);
    expect((await embed({ model: "hearth", input: "still there" })).embeddings.length).toBe(1);
  });

  for (const name of ["bert-mean", "bert-cls"]) {
    goldenTest(`embeddings of ${name} are llama.cpp's`, async () => {
      const { input, embeddings } = await Bun.file(golden(`bert/${name}.json`)).json();
      const digest = new Bun.CryptoHasher("sha256")
        .update(await Bun.file(golden(`bert/${name}.gguf`)).bytes())
        .digest("hex");
      const blob = `/api/blobs/sha256:${digest}`;
      await fetch(hearth.url + blob, { method: "POST", body: Bun.file(golden(`bert/${name}.gguf`)) });
      const files = { "model.gguf": `sha256:${digest}` };
      expect((await hearth.post("/api/create", { model: name, files, stream: false })).status).toBe(200);
      const got = (await embed({ model: name, input })).embeddings;
      for (const [i, vector] of got.entries()) expect(cosine(vector, embeddings[i])).toBeGreaterThan(0.9999);
    });
  }
});

describe("POST /api/embeddings", () => {
  test("the answer's embedding is the vector of the prompt", async () => {
    const response = await hearth.post("/api/embeddings", { model: "bert", prompt: "dog" });
    const { embedding } = (await response.json()) as { embedding: number[] };
    expect(cosine(embedding, (await embed({ input: "dog" })).embeddings[0]!)).toBeGreaterThan(0.99999);
  });

  test("a prompt that is too long is an error", async () => {
    const error = [400, "the input length exceeds the context length"];
    expect(await failure("/api/embeddings", { prompt: LONG })).toEqual(error);
  });

  test("options: num_ctx limits the length of the prompt", async () => {
    const error = [400, "the input length exceeds the context length"];
    const prompt = "dog over the hill";
    expect(await failure("/api/embeddings", { prompt, options: { num_ctx: 4 } })).toEqual(error);
    expect((await failure("/api/embeddings", { prompt, options: { num_ctx: 64 } }))[0]).toBe(200);
  });

  test("keep_alive: the model stays for five minutes by default, else as long as requested; 0 unloads it", async () => {
    const secondsLeft = async (body: object): Promise<number> => {
      expect((await failure("/api/embeddings", { prompt: "dog", ...body }))[0]).toBe(200);
      const { models } = (await (await fetch(`${hearth.url}/api/ps`)).json()) as { models: Loaded[] };
      const model = models.find(({ name }) => name === "bert:latest");
      return model ? (Date.parse(model.expires_at) - Date.now()) / 1000 : 0;
    };
    expect(await secondsLeft({ keep_alive: 0 })).toBeLessThanOrEqual(0);
    expect(await eventually(async () => !(await loadedModels()).includes("bert:latest"), 20_000)).toBe(true);
    expect(await secondsLeft({})).toBeWithin(200, 300.1);
    expect(await secondsLeft({ keep_alive: "1h" })).toBeWithin(3000, 3600.1);
  });
});

describe("an embedding model", () => {
  test("POST /api/show lists only the capability embedding", async () => {
    const response = await hearth.post("/api/show", { model: "bert" });
    expect(await response.json()).toMatchObject({ capabilities: ["embedding"], details: { family: "bert" } });
  });

  test("POST /api/generate and /api/chat refuse the model", async () => {
    const messages = [{ role: "user", content: "hi" }];
    expect(await failure("/api/generate", { prompt: "hi" })).toEqual([400, '"bert" does not support generate']);
    expect(await failure("/api/chat", { messages })).toEqual([400, '"bert" does not support chat']);
  });
});
