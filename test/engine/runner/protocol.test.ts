/** The reactions of a runner's process to each message, and to the end of its parent. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { resolve } from "node:path";
import type { FromRunner, LoadMessage, ToRunner } from "../../../src/engine/runner/messages.ts";
import { eventually, isAlive } from "../../e2e/hearth.ts";
import { RUNNER } from "../../program.ts";
import { endless, generate, isOf, LOAD, RUNNER_ENV, spawnRunner, textOf, type Spawned } from "./spawned.ts";

setDefaultTimeout(120_000);

/** Answered by a text, once a model is loaded. */
const probe = (id: number): ToRunner => ({ kind: "detokenize", id, tokens: [] });

describe("a load", () => {
  test.each<[string, Partial<LoadMessage>, Partial<FromRunner>]>([
    ["from a missing file", { path: "/nowhere/m.gguf" }, { code: "not_found" }],
    ["from a file that is no GGUF", { path: resolve(import.meta.dir, "spawned.ts") }, { code: "bad_file" }],
    ["onto an unknown backend", { backend: "abacus" }, { code: "unsupported" }],
  ])("%s fails with a code and a message, and the process ends", async (_, wrong, expected) => {
    const { child, received, send } = spawnRunner();
    send({ ...LOAD, ...wrong });
    expect(await child.exited).toBe(1);
    expect(received.filter(({ kind }) => kind !== "progress")).toEqual([
      { kind: "failed", message: expect.any(String), ...expected } as FromRunner,
    ]);
  });

  test("reports progress and then ready, and requests before that get no answer", async () => {
    const { child, received, send, hear } = spawnRunner();
    send(probe(1), generate(2, "Hi"), LOAD);
    const { info, template } = await hear(isOf("ready"));
    expect([info.ctxLen, "facts" in template]).toEqual([256, true]);
    send(probe(3));
    await hear(isOf("text", 3));
    expect(received.map(({ kind }) => kind).filter((kind) => kind !== "progress")).toEqual(["ready", "text"]);
    send({ kind: "close" });
    expect(await child.exited).toBe(0);
  });
});

describe("a loaded runner", () => {
  let runner: Spawned;
  beforeAll(async () => {
    runner = spawnRunner();
    runner.send(LOAD);
    await runner.hear(isOf("ready"));
  });
  afterAll(async () => {
    runner.send({ kind: "close" });
    expect(await runner.child.exited).toBe(0); // whatever the request
  });

  test("answers two simultaneous requests as it answers each alone", async () => {
    const { send, end, events } = runner;
    send(generate(10, "Once upon a time"));
    await end(10);
    send(generate(11, "The capital of France is"));
    await end(11);
    send(generate(12, "Once upon a time"), generate(13, "The capital of France is"));
    expect((await Promise.all([end(12), end(13)])).map(({ kind }) => kind)).toEqual(["done", "done"]);
    expect([textOf(events(12)), textOf(events(13))]).toEqual([textOf(events(10)), textOf(events(11))]);
    expect(textOf(events(12))).not.toBe(textOf(events(13)));
    expect(events(12)[0]).toMatchObject({ kind: "prompt", id: 12 });
  });

  test("stops a cancelled request, and reuses its slot", async () => {
    const { send, events, end } = runner;
    send(endless(20), endless(21));
    expect(await eventually(() => [20, 21].every((id) => textOf(events(id)) !== ""), 60_000)).toBe(true);
    send({ kind: "cancel", id: 20 }, generate(22, "Hi"));
    expect((await end(22)).kind).toBe("done"); // there are two slots, and the other one is still taken
    const eventCount = events(20).length;
    send(generate(23, "Hi"));
    await end(23);
    expect(events(20)).toHaveLength(eventCount);
    send({ kind: "cancel", id: 21 }, { kind: "cancel", id: 21 }, { kind: "cancel", id: 999 });
    send(generate(24, "Hi"));
    expect((await end(24)).kind).toBe("done");
  });

  test("embeds while it generates", async () => {
    const { send, hear, end } = runner;
    send(generate(30, "Once upon a time", { num_predict: 20 }));
    send({ kind: "embed", id: 31, inputs: ["one", "two words"], truncate: true });
    const { indexes, vectors, tokens } = await hear(isOf("embedded", 31));
    expect((await end(30)).kind).toBe("done");
    expect(tokens).toBeGreaterThanOrEqual(indexes.length);
    const dim = vectors.length / indexes.length;
    for (let row = 0; row < indexes.length; row++) {
      const norm = Math.hypot(...vectors.subarray(row * dim, (row + 1) * dim));
      expect(norm).toBeCloseTo(1, 4);
    }
  });

  test("refuses a text longer than the context with truncate false", async () => {
    const { send, hear } = runner;
    send({ kind: "embed", id: 40, inputs: ["word ".repeat(1000)], truncate: false });
    expect(await hear(isOf("embedFailed", 40))).toMatchObject({ code: "bad_request" });
    send({ ...generate(41, "word ".repeat(1000)), truncate: false });
    expect(await runner.end(41)).toMatchObject({ kind: "error", code: "bad_request" });
  });

  test("turns text into ids and back, and refuses ids outside the vocabulary", async () => {
    const { send, hear } = runner;
    const asked = { addSpecial: false, parseSpecial: false, wantsPieces: true };
    send({ kind: "tokenize", id: 50, text: "Hello, world", ...asked });
    const { tokens, pieces } = await hear(isOf("tokens", 50));
    expect(Buffer.concat([...pieces!]).toString()).toBe("Hello, world");
    send({ kind: "detokenize", id: 51, tokens: [...tokens] }, { kind: "detokenize", id: 52, tokens: [1e9] });
    expect((await hear(isOf("text", 51))).text).toBe("Hello, world");
    expect(await hear(isOf("refused", 52))).toMatchObject({ code: "bad_request" });
  });

  test("ignores an unknown message", async () => {
    const { send, hear, received } = runner;
    const before = received.length;
    send({ kind: "dance", id: 60 } as unknown as ToRunner, probe(61));
    await hear(isOf("text", 61));
    expect(received).toHaveLength(before + 1);
  });
});

describe("the end of a runner", () => {
  let runner: Spawned | undefined;
  afterEach(() => runner?.child.kill("SIGKILL"));
  const start = async (): Promise<Spawned> => {
    runner = spawnRunner();
    runner.send(LOAD, endless(1));
    await runner.hear(isOf("ready"));
    runner.send(endless(2));
    expect(await eventually(() => textOf(runner!.events(2)) !== "", 60_000)).toBe(true);
    return runner;
  };

  test("is exit code 0 after close, even during an answer", async () => {
    const { child, send } = await start();
    send({ kind: "close" });
    expect(await child.exited).toBe(0);
  });

  test("is exit code 0 after its channel closes, even during an answer", async () => {
    const { child } = await start();
    child.disconnect();
    expect(await child.exited).toBe(0);
  });

  test("follows the death of its parent", async () => {
    const parent = Bun.spawn(
      [
        process.execPath,
        "-e",
        `const child = Bun.spawn(${JSON.stringify(RUNNER)}, { env: ${JSON.stringify(RUNNER_ENV)}, serialization: "json",
           stdio: ["ignore", "ignore", "ignore"],
           ipc: (message) => { if (message.kind === "ready") { child.send(${JSON.stringify(endless(1))}); console.log(child.pid); } } });
         child.send(${JSON.stringify(LOAD)});`,
      ],
      { stdin: "ignore", stdout: "pipe", stderr: "inherit" },
    );
    const { value } = await parent.stdout.getReader().read();
    const pid = Number(new TextDecoder().decode(value));
    expect(await isAlive(pid)).toBe(true);
    parent.kill("SIGKILL");
    await parent.exited;
    expect(await eventually(async () => !(await isAlive(pid)), 30_000)).toBe(true);
  });
});
