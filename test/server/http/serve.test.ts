import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startServer } from "../../../src/server/http/serve.ts";
import { rawRequest } from "../../e2e/raw-request.ts";
import { endless, hello, play } from "../fakes.ts";
import { linesOf, makeHarness, type Harness } from "../harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

const REQUEST = { method: "POST", body: JSON.stringify({ model: "m", prompt: "hi" }) };

test("a port in use gives one clear error", () => {
  const { url } = harness.listen();
  const address = { hostname: "127.0.0.1", port: Number(new URL(url).port) };
  expect(() => startServer(harness.app, { host: address })).toThrow(
    `cannot listen on 127.0.0.1:${address.port}: the address is already in use, maybe by another Hearth or by Ollama`,
  );
});

test("an address of another machine gives one clear error", () => {
  const host = { hostname: "192.0.2.1", port: 0 };
  expect(() => startServer(harness.app, { host })).toThrow("cannot listen on 192.0.2.1:0: ");
});

test("an error about an address does not quote the system's message", () => {
  const listenOn = (hostname: string) => () => startServer(harness.app, { host: { hostname, port: 0 } });
  expect(listenOn("192.0.2.1")).toThrow("cannot listen on 192.0.2.1:0: no address of this machine has that name");
  expect(listenOn("nobody.invalid")).toThrow("cannot listen on nobody.invalid:0: no address of this machine has");
});

test("IPv6 addresses stand in brackets in the URL", async () => {
  const server = startServer(harness.app, { host: { hostname: "::1", port: 0 } });
  expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect((await fetch(server.url)).status).toBe(200);
  await server.stop(0);
});

describe("stopping", () => {
  test("lets running requests finish and takes no new ones", async () => {
    const server = harness.listen();
    harness.runtime.script = play(
      [
        { kind: "text", text: "slow" },
        { kind: "done", reason: "stop" },
      ],
      60,
    );
    const response = await fetch(`${server.url}/api/generate`, REQUEST);
    const stopped = server.stop(60_000);
    const refused = await fetch(server.url).catch(() => "refused");
    expect(refused).toBe("refused");
    expect((await linesOf(response)).at(-1)).toMatchObject({ done: true });
    await stopped;
  });

  test("aborts requests that run longer than the grace", async () => {
    const server = harness.listen();
    harness.runtime.script = endless(5);
    const response = await fetch(`${server.url}/api/generate`, REQUEST);
    const startedMs = performance.now();
    await server.stop(100);
    expect(performance.now() - startedMs).toBeLessThan(20_000); // it never ends
    await response.text().catch(() => "reset");
    while (harness.runtime.running() > 0) await Bun.sleep(1);
    harness.runtime.script = hello;
  });

  test("is quick when only idle connections are open", async () => {
    const server = harness.listen();
    await (await fetch(server.url)).text();
    const startedMs = performance.now();
    await server.stop(60_000);
    expect(performance.now() - startedMs).toBeLessThan(30_000);
  });
});

describe("a doubled slash, from a base URL that ends with a slash", () => {
  const GENERATE = '{"model":"m","prompt":"hi"}';
  const CHAT = '{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":3}';
  const portOf = (url: string): number => Number(new URL(url).port);
  /** Raw: `fetch` removes one slash. */
  const raw = (target: string, body?: string) =>
    rawRequest(portOf(harness.listen().url), { target, ...(body === undefined ? {} : { method: "POST", body }) });

  test.each(["//api/generate", "/api//generate", "//api/generate/", "/api//generate/"])("%s", async (target) => {
    const { status, body } = await raw(target, GENERATE);
    expect([status, body.includes('"done":true')]).toEqual([200, true]);
  });

  test("is accepted in place of the slash after the base URL, and nowhere else", async () => {
    for (const target of ["/v1//chat/completions", "//v1/chat/completions", "/v1//messages"]) {
      expect([target, (await raw(target, CHAT)).status]).toEqual([target, 200]);
    }
    for (const target of ["//api/tags", "/v1//models/m"]) expect((await raw(target)).status).toBe(200);
    const others = ["///api/tags", "/api///tags", "//health", "/v1/chat//completions", "//x/..//api/tags"];
    for (const target of [...others, "/x/..//api/tags", "/x\\..//api/tags", "//api/x/../tags", "/api//x/..\\tags"]) {
      expect([target, [400, 404].includes((await raw(target)).status)]).toEqual([target, true]);
    }
  });

  test("does not avoid the check of keys", async () => {
    const locked = await makeHarness({ apiKeys: ["alpha"] });
    const port = portOf(locked.listen().url);
    for (const target of ["//api/tags", "/api//tags", "/v1//models", "//v1/models", "/api//%74ags"]) {
      expect([target, (await rawRequest(port, { target })).status]).toEqual([target, 401]);
    }
    await locked.close();
  });

  test("a client that disconnects stops its answer", async () => {
    harness.runtime.script = endless(5);
    const leaving = new AbortController();
    const response = await fetch(`${harness.listen().url}/api//generate`, { ...REQUEST, signal: leaving.signal });
    await response.body!.getReader().read();
    expect(harness.runtime.running()).toBe(1);
    leaving.abort();
    while (harness.runtime.running() > 0) await Bun.sleep(1);
    harness.runtime.script = hello;
  });
});
