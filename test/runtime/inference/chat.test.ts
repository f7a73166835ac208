/** Chats through the runtime and a real runner of the embedded model: the messages between the processes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { makeRuntime } from "../../../src/runtime/local.ts";
import { RunnerProcess } from "../../../src/runtime/processes/runner-process.ts";
import type { ChatRequest, InferenceEvent, Runtime } from "../../../src/runtime/requests/runtime.ts";
import { writeBlob } from "../../../src/library/store/blobs.ts";
import { CONFIG_TYPE, mediaType, readManifest, writeManifest } from "../../../src/library/store/manifest.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { manifestPath, type Store } from "../../../src/library/store/store.ts";
import { installSeeded } from "../../e2e/seeded-model.ts";
import { BUN_ENV } from "../../bun-env.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "hearth-chat-"));
const notes = join(folder, "messages");
const forever = new AbortController().signal;
let store: Store;
let runtime: Runtime;
let pids: number[] = [];

beforeAll(async () => {
  store = await installSeeded(join(folder, "models"));
  const command = [process.execPath, resolve(import.meta.dir, "../noting-runner.ts"), notes];
  const spawn = { command, env: { PATH: process.env["PATH"], ...BUN_ENV }, loadTimeoutMs: 30_000 };
  runtime = makeRuntime({
    store,
    now: () => new Date(0),
    pool: {
      backend: "onnx",
      ctxLen: 256,
      numParallel: 2,
      maxLoaded: undefined,
      maxQueue: 8,
      keepAliveMs: 60_000,
      cacheDir: undefined,
      freeBytes: () => 1e12,
      start: async (load, signal) => {
        const runner = await RunnerProcess.start(load, spawn, signal);
        pids.push(runner.pid);
        return runner;
      },
    },
  });
});
afterAll(async () => {
  await runtime.close(0);
  rmSync(folder, { recursive: true });
});
beforeEach(() => writeFileSync(notes, ""));

const user = (content: string) => ({ role: "user", content });

function request(more: Partial<ChatRequest> = {}): ChatRequest {
  const options = { num_predict: 3, num_ctx: 256, temperature: 0 };
  return { model: "hearth", messages: [user("Hello there.")], options, signal: forever, ...more };
}

const ask = (more?: Partial<ChatRequest>): Promise<InferenceEvent[]> => Array.fromAsync(runtime.chat(request(more)));

/** Kinds of the messages since the last call, the server's or the runner's. */
function messages(of: "server" | "runner"): string[] {
  const lines = readFileSync(notes, "utf8").split("\n").slice(0, -1);
  return lines.filter((line) => line.startsWith("> ") === (of === "runner"));
}

function doneOf(events: readonly InferenceEvent[]): Extract<InferenceEvent, { kind: "done" }> {
  const last = events.at(-1);
  if (last?.kind !== "done") throw new Error(`ended with ${last?.kind}`);
  return last;
}

const long = Array.from({ length: 40 }, (_, i) =>
  i % 2 === 0 ? user(`Question ${i}, with some words that take room.`) : { role: "assistant", content: `Answer ${i}.` },
);

describe("the channel to the runner", () => {
  test("carries one message for a chat of any length, and one for a count", async () => {
    await ask();
    writeFileSync(notes, "");
    await ask();
    await ask({ messages: [...long, user("And now?")] });
    expect(messages("server")).toEqual(["generate", "generate"]);
    writeFileSync(notes, "");
    await runtime.countTokens(request());
    expect(messages("server")).toEqual(["count"]);
    expect(messages("runner")).toEqual(["> count"]);
  });

  test("carries a short answer in at most three messages, with the prompt's statistics in the first", async () => {
    await ask();
    writeFileSync(notes, "");
    const events = await ask();
    expect(messages("runner").length).toBeLessThanOrEqual(3);
    const [first] = events;
    const { statistics } = doneOf(events);
    if (first?.kind !== "prompt" || !statistics) throw new Error("no prompt or no statistics");
    expect(first.promptEvalCount).toBe(await runtime.countTokens(request()));
    expect(statistics).toMatchObject({
      promptEvalCount: first.promptEvalCount,
      promptCachedCount: first.promptCachedCount,
    });
    expect(events.filter(({ kind }) => kind === "prompt")).toHaveLength(1);
  });

  test("carries the template of a name that shares weights once", async () => {
    const { config, layers } = await readManifest(manifestPath(store.root, parseName("hearth")));
    const text = new TextEncoder().encode("{{ range .Messages }}{{ .Content }} {{ .Role }}\n{{ end }}");
    const template = { mediaType: mediaType("template"), ...(await writeBlob(store.root, text)) };
    const own = new TextEncoder().encode(JSON.stringify({ model_format: "gguf", hearth_template: "own" }));
    await writeManifest(manifestPath(store.root, parseName("other")), {
      config: { ...config, ...(await writeBlob(store.root, own)), mediaType: CONFIG_TYPE },
      layers: [...layers.filter(({ mediaType: type }) => type !== template.mediaType), template],
    });
    await ask();
    const before = await runtime.countTokens(request());
    writeFileSync(notes, "");
    for (let i = 0; i < 2; i++) doneOf(await ask({ model: "other" }));
    expect(messages("server")).toEqual(["template", "generate", "generate"]);
    expect(await runtime.countTokens(request({ model: "other" }))).not.toBe(before);
    expect(await runtime.countTokens(request())).toBe(before);
    expect(new Set(runtime.loaded().map(({ pid }) => pid)).size).toBe(1);
  });
});

describe("a history longer than the context", () => {
  test("loses the fewest of its oldest messages that make it fit", async () => {
    const asked = [...long, user("And now?")];
    const { statistics, truncated } = doneOf(await ask({ messages: asked }));
    const used = statistics?.promptEvalCount ?? 0;
    expect([truncated, used <= 256 - 3]).toEqual([true, true]);
    const counts: number[] = [];
    for (let dropped = 1; dropped < asked.length; dropped++) {
      counts.push(await runtime.countTokens(request({ messages: asked.slice(dropped) })));
    }
    expect(used).toBe(counts.find((count) => count <= 256 - 3)!);
  });

  test("is refused with truncate false", async () => {
    const failed = ask({ messages: [...long, user("And now?")], truncate: false });
    expect(failed).rejects.toThrow("the prompt is longer than the context length");
    await failed.catch(() => {});
  });
});

describe("a runner killed between two requests", () => {
  const kill = (): boolean => process.kill(pids.at(-1)!, "SIGKILL");

  test("is replaced once, and fails none of the next requests", async () => {
    await ask();
    const count = await runtime.countTokens(request());
    for (let round = 0; round < 3; round++) {
      const before = pids.length;
      kill();
      const [one, two, counted, { tokens }] = await Promise.all([
        ask(),
        ask({ messages: [user("Something else.")] }),
        runtime.countTokens(request()),
        runtime.tokenize({
          model: "hearth",
          options: { num_ctx: 256 },
          signal: forever,
          text: "a",
          addSpecial: false,
          parseSpecial: false,
          wantsPieces: false,
        }),
      ]);
      expect([doneOf(one).reason, doneOf(two).reason]).toEqual(["length", "length"]);
      expect([counted, tokens.length > 0, pids.length]).toEqual([count, true, before + 1]);
    }
  });

  test("is not polled before a request", async () => {
    await ask();
    writeFileSync(notes, "");
    await ask();
    expect(messages("server")).toEqual(["generate"]);
  });

  test("fails an answer in progress", async () => {
    await ask();
    const kinds: string[] = [];
    // it cannot end by itself before this process runs again, however long that takes
    const options = { num_predict: 100_000, num_ctx: 256, temperature: 1, ignore_eos: true };
    let isKilled = false;
    const failed = (async () => {
      for await (const { kind } of runtime.chat(request({ options }))) {
        kinds.push(kind);
        if (kind === "text") isKilled ||= kill();
      }
    })();
    expect(failed).rejects.toThrow("model runner has unexpectedly stopped");
    await failed.catch(() => {});
    expect(kinds.filter((kind) => kind === "prompt")).toHaveLength(1);
  });
});

test("control tokens in messages from outside are encoded as text", async () => {
  const counts: number[] = [];
  for (const content of ["a <|im_end|> b", "a <|im_end|><|im_end|><|im_end|> b"]) {
    for (const isOutside of [false, true])
      counts.push(await runtime.countTokens(request({ messages: [user(content)], isOutside })));
  }
  const [one, outside, three, outsideThree] = counts as [number, number, number, number];
  expect([three - one, outside > one]).toEqual([2, true]);
  expect(outsideThree - outside).toBeGreaterThan(2 * 2); // several tokens each
  doneOf(await ask({ messages: [user("a <|im_end|> b")], isOutside: true }));
});

test("a model without vision gets a line of text in place of each image of the history", async () => {
  const images = [new Uint8Array(3)];
  const call = { function: { name: "look", arguments: {} } };
  const messages = [
    { ...user("before after"), images: [...images, ...images], imagesAt: [0, 7] },
    { role: "assistant", content: "", tool_calls: [call] },
    { role: "tool", content: "", tool_name: "look", images },
  ];
  const text = await runtime.render(request({ messages }));
  const line = "[image left out: hearth cannot see images]";
  expect(text).toContain(`${line}\nbefore \n${line}\nafter`);
  expect(text.split(line)).toHaveLength(4);
  doneOf(await ask({ messages }));
});

test("an image is refused if the loaded model takes none", async () => {
  const failed = ask({ messages: [{ ...user("What is this?"), images: [new Uint8Array(3)] }] });
  expect(failed).rejects.toThrow('"hearth" does not support images');
  await failed.catch(() => {});
});
