/** The API for pages, in a page of a headless browser, compared with the server's runner. */
import { expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { buildForBrowser } from "../../../src/page/engine/build.ts";
import { RunnerProcess } from "../../../src/runtime/processes/runner-process.ts";
import { RUNNER } from "../../program.ts";
import { COUNT, NAME, request, type ChatSaid } from "./chat-page.ts";
import { browserRefusal, sayingsOf } from "./chromium.ts";
import { ranged } from "./ranged.ts";
import { textOf } from "./text-of.ts";

const ROOT = resolve(import.meta.dir, "../../..");
const MODEL = join(ROOT, "models/hearth/hearth.gguf");

const refusal = await browserRefusal();
const name = "a page stores a model, gives the answer of the server's runner, stops an answer, and closes";

test.skipIf(refusal !== undefined)(
  refusal === undefined ? name : `${name} (${refusal})`,
  async () => {
    const [worker, page] = await Promise.all([
      buildForBrowser(),
      buildForBrowser(join(import.meta.dir, "chat-page.ts")),
    ]);
    const scripts = [...worker.scripts, ...page.scripts];
    const sayings = await sayingsOf<ChatSaid>({
      script: page.scripts[0]!.text, // the entry
      serve(request) {
        const { pathname } = new URL(request.url);
        if (pathname === "/model") return ranged(request, MODEL);
        const script = scripts.find((each) => pathname === `/${each.name}`);
        return script && new Response(script.text, { headers: { "content-type": "text/javascript" } });
      },
    });
    const [said] = sayings;
    expect(said).toBeDefined();
    const { progress, stored, text, tokens, stoppedAfter, again, closed, failure, left } = said!;
    const size = Bun.file(MODEL).size;
    expect(progress.at(0)).toEqual({ done: 0, total: size });
    expect(progress.at(-1)).toEqual({ done: size, total: size });
    expect([stored, left]).toEqual([[NAME], []]);
    expect(stoppedAfter).toBe(3);
    expect(again).toBe(text);
    expect(closed).toBe("the model's Worker was closed");
    expect(failure).toBe("other: no such file");
    const runner = await startServers();
    const expected = await textOf(runner.generate(request, new AbortController().signal));
    await runner.close();
    expect(expected.tokens.length).toBeGreaterThan(COUNT);
    expect({ text, tokens }).toEqual(expected);
  },
  180_000,
);

/** A runner like the server's, also on the reference backend. */
function startServers(): Promise<RunnerProcess> {
  const load = {
    kind: "load",
    path: MODEL,
    adapters: [],
    template: { go: undefined, prefersGo: undefined },
    backend: "cpu",
    gpuLayers: undefined,
    gpuMemory: undefined,
    ctxLen: 256,
    slots: 1,
    chunk: 64,
    threads: 1,
    precise: false,
    cacheDir: undefined,
  } as const;
  return RunnerProcess.start(
    load,
    { command: RUNNER, env: process.env, loadTimeoutMs: 60_000 },
    new AbortController().signal,
  );
}
