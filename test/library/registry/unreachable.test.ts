/** Unreachable registries: the error names the cause, and a remedy. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { makePlace, type Place } from "./place.ts";

setDefaultTimeout(60_000);

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function failureOf(name: string, { insecure = true, stallMs = 5000 } = {}): Promise<string> {
  const place: Place = await makePlace({ tries: 2, stallMs }, insecure);
  open.push(place.close);
  try {
    await Array.fromAsync(place.pull(name));
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

/** @returns its port */
function listen(onConnection: Parameters<typeof createServer>[1]): Promise<number> {
  const server: Server = createServer(onConnection as () => void);
  open.push(() => server.close());
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
  );
}

test("an unknown name: the error asks if this machine is online", async () => {
  for (const insecure of [true, false]) {
    expect(await failureOf("registry.invalid/x/y", { insecure })).toBe(
      "cannot find registry.invalid: is this machine online? (HTTPS_PROXY is read)",
    );
  }
});

test("a closed port: the error says that the connection was refused", async () => {
  const server = createServer();
  const port = await new Promise<number>((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
  );
  server.close();
  expect(await failureOf(`127.0.0.1:${port}/x/y`)).toBe(
    `cannot connect to 127.0.0.1:${port}: connection refused: does a registry listen there? (HTTPS_PROXY is read)`,
  );
});

test("a silent port: the error says that nothing came, and asks if this machine is online", async () => {
  const port = await listen(
    (socket: { on(event: "error", listener: () => void): unknown }) => void socket.on("error", () => {}),
  );
  expect(await failureOf(`127.0.0.1:${port}/x/y`, { stallMs: 200 })).toBe(
    `nothing came from 127.0.0.1:${port} for 0.2 s: is this machine online? (HTTPS_PROXY is read)`,
  );
});

test("a port that hangs up: the error says that the connection was closed", async () => {
  const port = await listen((socket: { destroy(): unknown }) => void socket.destroy());
  expect(await failureOf(`127.0.0.1:${port}/x/y`)).toBe(
    `max retries exceeded: 127.0.0.1:${port}: the connection was closed`,
  );
});

test("a port without TLS: the error names 'insecure'", async () => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
  open.push(() => server.stop(true));
  expect(await failureOf(`127.0.0.1:${server.port}/x/y`, { insecure: false })).toBe(
    `127.0.0.1:${server.port}: it does not answer in TLS ('insecure' allows it)`,
  );
});
