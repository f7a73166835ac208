import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startServer } from "../../../src/server/http/serve.ts";
import { endless, hello, play } from "../fakes.ts";
import { linesOf, makeHarness, type Harness } from "../harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

const REQUEST = { method: "POST", body: JSON.stringify({ model: "m", prompt: "hi" }) };

test("a port in use is one clear line", () => {
  const { url } = harness.listen();
  const address = { hostname: "127.0.0.1", port: Number(new URL(url).port) };
  expect(() => startServer(harness.app, { host: address })).toThrow(
    `cannot listen on 127.0.0.1:${address.port}: the address is already in use`,
  );
});

test("an address of another machine is one clear line", () => {
  const host = { hostname: "192.0.2.1", port: 0 };
  expect(() => startServer(harness.app, { host })).toThrow("cannot listen on 192.0.2.1:0: ");
});

test("what is wrong with an address is said without the system's words", () => {
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
    const stopped = server.stop(5000);
    const refused = await fetch(server.url).catch(() => "refused");
    expect(refused).toBe("refused");
    expect((await linesOf(response)).at(-1)).toMatchObject({ done: true });
    await stopped;
  });

  test("cuts off what runs longer than the grace", async () => {
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
