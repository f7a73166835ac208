/** The model of a request is looked up once, in every API, and the runtime gets the result. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { makeApp } from "../../src/server/app.ts";
import { makeLogger } from "../../src/base/log.ts";
import { openStore, type Store } from "../../src/library/store/store.ts";
import { makeLibrary } from "../../src/library/create/library.ts";
import { makeRegistry } from "../../src/library/registry/registry.ts";
import { makeFakeRuntime } from "./fakes.ts";
import { makeHarness, NOW, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

/** An application whose store counts its look-ups. */
async function counting() {
  const { root } = harness;
  const asked: string[] = [];
  const store = await openStore(root);
  const note =
    <A extends unknown[], R>(name: string, work: (...args: A) => R) =>
    (...args: A): R => (asked.push(name), work(...args));
  const noted: Store = {
    ...store,
    find: note("find", store.find),
    load: note("load", store.load),
    resolve: note("resolve", store.resolve),
  };
  const log = makeLogger({ write: () => {}, now: () => NOW.getTime(), debug: false });
  const library = makeLibrary({ root, importDirs: [], noPrune: true, log });
  const runtime = makeFakeRuntime();
  const registry = makeRegistry({ library, home: root, version: "1" });
  const config = {
    home: root,
    host: { hostname: "127.0.0.1", port: 0 },
    hosts: [],
    origins: [],
    apiKeys: [],
    metricsDialect: "hearth" as const,
    responses: { count: 0, bytes: 0, ageMs: 0 },
  };
  const parts = { runtime, store: noted, library, registry, config, log, version: "1", now: () => NOW };
  return { app: makeApp(parts), asked, runtime };
}

const user = [{ role: "user", content: "hi" }];
const BODIES: Readonly<Record<string, object>> = {
  "/api/chat": { messages: user },
  "/api/generate": { prompt: "hi" },
  "/api/embed": { input: "hi" },
  "/api/embeddings": { prompt: "hi" },
  "/v1/chat/completions": { messages: user },
  "/v1/completions": { prompt: "hi" },
  "/v1/embeddings": { input: "hi" },
  "/v1/messages": { messages: user, max_tokens: 5 },
  "/v1/responses": { input: "hi" },
};

test.each(Object.entries(BODIES))("%s", async (path, body) => {
  const { app, asked, runtime } = await counting();
  const given = { method: "POST", body: JSON.stringify({ model: "M", ...body }) };
  const ask = (): Promise<Response> => app.handle(new Request(`http://localhost${path}`, given));
  await (await ask()).text(); // afterwards the facts of the model are cached
  asked.length = 0;
  runtime.refs.length = 0;
  const response = await ask();
  await response.text();
  expect([response.status, asked, runtime.refs]).toEqual([200, ["resolve"], ["m:latest"]]);
});
