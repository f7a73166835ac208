/** Models of another server: requests arrive there unchanged, and each failure is named. */
import { afterEach, expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import { makeRemoteRuntime, type RemoteOptions, type RemoteRuntime } from "../../../src/runtime/remote/remote.ts";
import type { ChatRequest, InferenceEvent } from "../../../src/runtime/requests/runtime.ts";
import { eventually } from "../../e2e/hearth.ts";
import { DONE, endless, play } from "../../server/fakes.ts";
import { makeHarness, type Harness } from "../../server/harness.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const to = (url: string, options: Partial<RemoteOptions> = {}): RemoteRuntime =>
  makeRemoteRuntime({ url, key: undefined, silenceMs: Infinity, fetch, now: Date.now, ...options });

async function elsewhere(config: Parameters<typeof makeHarness>[0] = {}): Promise<Harness & { url: string }> {
  const harness = await makeHarness(config);
  cleanups.push(harness.close);
  return { ...harness, url: harness.listen().url };
}

/** A server with one answer for everything; records the headers of its requests. */
function answering(answer: () => Response | Promise<Response>): { url: string; headers: Headers[] } {
  const headers: Headers[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: (request) => (headers.push(request.headers), answer()),
  });
  cleanups.push(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, headers };
}

const asking = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  model: "m:latest",
  messages: [{ role: "user", content: "hi" }],
  options: {},
  signal: new AbortController().signal,
  ...more,
});

const failure = async (work: Promise<unknown>): Promise<Pick<AppError, "code" | "message" | "isUntried">> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw new Error(`expected an AppError, got ${String(error)}`);
  return { code: error.code, message: error.message, isUntried: error.isUntried };
};
const all = (runtime: RemoteRuntime, request = asking()): Promise<InferenceEvent[]> =>
  Array.fromAsync(runtime.chat(request));

const CALL = { id: "c1", function: { index: 0, name: "clock", arguments: { zone: "UTC" } } };

test("a chat reaches the server unchanged, and its events come back unchanged", async () => {
  const there = await elsewhere();
  const statistics = { ...DONE.statistics!, promptCachedCount: 0 };
  const said: InferenceEvent[] = [
    { kind: "thinking", text: "hm" },
    { kind: "text", text: "at " },
    { kind: "toolCall", call: CALL },
    { kind: "done", reason: "length", statistics },
  ];
  there.runtime.script = play(said);
  const request = asking({
    messages: [
      { role: "user", content: "what time is it?", images: [Uint8Array.of(1, 2, 3)] },
      { role: "assistant", content: "", thinking: "a call", tool_calls: [CALL] },
      { role: "tool", content: "noon", tool_name: "clock", tool_call_id: "c1" },
    ],
    options: { num_predict: 7, stop: ["x"] },
    tools: [{ type: "function", function: { name: "clock", description: "tells", parameters: { type: "object" } } }],
    toolChoice: "none",
    format: { type: "object" },
    truncate: false,
    shift: false,
    isOutside: true,
    keepAliveMs: 1500,
  });
  expect(await all(to(there.url), request)).toEqual(said);
  const { signal: _here, ...wanted } = request;
  const { signal: _there, ...got } = there.runtime.requests[0] as ChatRequest;
  expect(got).toEqual(wanted);
});

test("the server counts tokens, which gives the model's context; model names are those that it lists", async () => {
  const there = await elsewhere();
  there.runtime.models = [{ name: "m:latest", ctxLen: 777 }] as typeof there.runtime.models;
  const runtime = to(there.url);
  expect(runtime.loaded()).toEqual([]);
  expect(await runtime.countTokens(asking({ messages: [{ role: "user", content: "one two three" }] }))).toBe(3);
  expect(runtime.loaded()).toEqual([{ name: "m:latest", ctxLen: 777 }]);
  expect(await runtime.modelNames()).toEqual(["m:latest"]);
});

test("canChat is false only for a model whose listed capabilities exclude completion", async () => {
  const listed = [
    { name: "text", capabilities: ["completion", "tools"] },
    { name: "embed", capabilities: ["embedding"] },
    { name: "old", capabilities: null },
    { name: "silent" },
  ];
  const { url } = answering(() => Response.json({ models: listed }));
  const runtime = to(url);
  expect(await runtime.modelNames()).toEqual(["text", "embed", "old", "silent"]);
  expect(await Promise.all(["text", "embed", "old", "silent", "none"].map(runtime.canChat))).toEqual([
    true,
    false,
    true,
    true,
    true,
  ]);
});

test("model names are fetched again after five seconds, and the last ones stay if that fails", async () => {
  let nowMs = 0;
  let isAway = false;
  const { url, headers } = answering(() =>
    isAway ? new Response("", { status: 502 }) : Response.json({ models: [{ name: `m${headers.length}` }] }),
  );
  const runtime = to(url, { now: () => nowMs });
  const names: string[] = [];
  for (const atMs of [0, 4999, 5001, 20_000]) {
    nowMs = atMs;
    isAway = atMs === 20_000;
    names.push(...(await runtime.modelNames()));
  }
  expect(names).toEqual(["m1", "m1", "m2", "m2"]);
  expect((await failure(to(url).modelNames())).code).toBe("upstream");
});

test("model names are fetched once for all callers, who get the last ones while the server hangs", async () => {
  let nowMs = 0;
  const { url, headers } = answering(() =>
    nowMs > 0 ? new Promise<Response>(() => {}) : Response.json({ models: [{ name: "m:latest" }] }),
  );
  const runtime = to(url, { now: () => nowMs, namesWaitMs: 60_000 });
  expect(await runtime.modelNames()).toEqual(["m:latest"]);
  nowMs = 20_000;
  const both = await Promise.all([runtime.modelNames(), runtime.modelNames()]);
  expect(both).toEqual([["m:latest"], ["m:latest"]]);
  expect(headers.length).toBe(2);
}, 30_000);

test("a server that does not list its models in time is an upstream error, not a cancellation", async () => {
  const { url } = answering(() => new Promise<Response>(() => {}));
  const { code, message, isUntried } = await failure(to(url, { namesWaitMs: 50 }).modelNames());
  expect([code, isUntried]).toEqual(["upstream", true]);
  expect(message).toBe(`the model server at ${url} did not name its models in 0.05 s`);
});

test("aborting a chat stops the generation on the server", async () => {
  const there = await elsewhere();
  there.runtime.script = endless(1);
  const stop = new AbortController();
  const events = to(there.url).chat(asking({ signal: stop.signal }));
  await events.next();
  expect(there.runtime.running()).toBe(1);
  stop.abort();
  const rest = (async () => {
    for await (const _ of events);
  })();
  expect((await failure(rest)).code).toBe("cancelled");
  expect(await eventually(() => there.runtime.running() === 0)).toBe(true);
});

test("closing the event stream stops the generation on the server", async () => {
  const there = await elsewhere();
  there.runtime.script = endless(1);
  const events = to(there.url).chat(asking());
  await events.next();
  await events.return();
  expect(await eventually(() => there.runtime.running() === 0)).toBe(true);
});

test("requests carry a hashed session id, the same for each session, and the key as a bearer token", async () => {
  const { url, headers } = answering(() => new Response('{"done":true}\n'));
  const runtime = to(url, { key: "secret" });
  for (const session of ["agent:main", "agent:main", "agent:other", undefined])
    await all(runtime, asking(session === undefined ? {} : { session }));
  const ids = headers.map((each) => each.get("x-session-id"));
  expect(ids[0]).toMatch(/^[0-9a-f]{32}$/);
  expect([ids[1] === ids[0], ids[2] === ids[0], ids[3]]).toEqual([true, false, null]);
  expect(headers.map((each) => each.get("authorization"))).toEqual(Array.from(ids, () => "Bearer secret"));
});

const refusals: [string, Response, { code: string; says: string }][] = [
  ["a refused key", Response.json({ error: "unauthorized" }, { status: 401 }), { code: "forbidden", says: "key" }],
  [
    "a model that the server lacks",
    Response.json({ error: "model 'm' not found" }, { status: 404 }),
    { code: "not_found", says: "'m' not" },
  ],
  ["a server without /api/chat", new Response("nope", { status: 404 }), { code: "bad_request", says: "no /api/chat" }],
  ["a busy server", Response.json({ error: "busy" }, { status: 503 }), { code: "busy", says: "503: busy" }],
  ["a failing server", new Response("", { status: 500 }), { code: "upstream", says: "500" }],
  [
    "an answer that ends in the middle",
    new Response('{"message":{"content":"a"}}\n'),
    { code: "upstream", says: "middle" },
  ],
  [
    "an error in the middle of an answer",
    new Response('{"message":{"content":"a"}}\n{"error":"died"}\n'),
    { code: "upstream", says: "died" },
  ],
  ["a line that is not JSON", new Response("<html>\n"), { code: "upstream", says: "invalid JSON: <html>" }],
  [
    "a line that is no part of an answer",
    new Response('{"message":{"content":5}}\n'),
    { code: "upstream", says: "message.content" },
  ],
  [
    "a redirect",
    new Response("", { status: 302, headers: { location: "http://127.0.0.1:1/" } }),
    { code: "upstream", says: "" },
  ],
];
for (const [name, response, { code, says }] of refusals) {
  test(`${name} is an error that names the server`, async () => {
    const { url } = answering(() => response);
    const failed = await failure(all(to(url)));
    expect([failed.code, failed.message]).toEqual([code, expect.stringContaining(says)]);
    expect(failed.message).toContain(url);
  });
}

test("an unreachable server and a silent one are upstream errors", async () => {
  const { code, message } = await failure(all(to("http://127.0.0.1:1")));
  expect([code, message]).toEqual(["upstream", expect.stringContaining("127.0.0.1:1 cannot be reached")]);
  const { url } = answering(() => new Promise<Response>(() => {}));
  const silent = await failure(all(to(url, { silenceMs: 50 })));
  expect([silent.code, silent.message]).toEqual(["upstream", expect.stringContaining("said nothing for 0.05 s")]);
});

test("an error is marked as untried if the server is unreachable, refuses the key, or answers 429, 502 or 503", async () => {
  expect((await failure(all(to("http://127.0.0.1:1")))).isUntried).toBe(true);
  expect((await failure(all(to("http://no-such-host.invalid")))).isUntried).toBe(true);
  for (const [status, isUntried] of [
    [401, true],
    [403, true],
    [429, true],
    [502, true],
    [503, true],
    [500, false],
    [504, false],
    [400, false],
  ] as const) {
    const { url } = answering(() => new Response("", { status }));
    expect([status, (await failure(all(to(url)))).isUntried]).toEqual([status, isUntried]);
  }
  const { url } = answering(() => new Response('{"message":{"content":"a"}}\n'));
  expect((await failure(all(to(url)))).isUntried).toBe(false);
});
