import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { eventually } from "../../e2e/hearth.ts";
import { endless, hello, pause, play } from "../fakes.ts";
import { makeHarness, type Harness } from "../harness.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
});
afterAll(() => harness.close());
afterEach(() => void (harness.runtime.script = hello));

const BODY = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
const PLAIN = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }], stream: false });

/** Maximum number of exchanges with other clients before the server notices that a client hung up. */
const EXCHANGES_MAX = 20;

/** Resolves once every generator of the runtime has ended, with the number of another client's exchanges until then. */
async function untilIdle(): Promise<number> {
  for (let exchanges = 0; ; exchanges++) {
    if (harness.runtime.running() === 0) return exchanges;
    if (exchanges === 10_000) throw new Error("the generator never ended");
    await (await fetch(`${url}/api/version`)).text();
  }
}

/** A raw connection that has sent a chat request and reads only on demand. */
async function openRaw(body: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.on("error", () => {});
  socket.write(`POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  return socket;
}

async function untilRunning(): Promise<void> {
  while (harness.runtime.running() === 0) await Bun.sleep(1);
}

describe("a client stops the model within a few requests if it hangs up", () => {
  test("while it reads a stream", async () => {
    harness.runtime.script = endless(5);
    const logged = harness.logs.length;
    const gone = new AbortController();
    const response = await fetch(`${url}/api/chat`, { method: "POST", body: BODY, signal: gone.signal });
    await response.body!.getReader().read();
    gone.abort();
    expect(await untilIdle()).toBeLessThan(EXCHANGES_MAX);
    const line = () => harness.logs.slice(logged).find(({ msg }) => msg === "request");
    await eventually(() => line() !== undefined);
    expect(line()).toMatchObject({ status: 499, error: "the client went away" });
  });

  test("while the model is silent", async () => {
    harness.runtime.script = async function* ({ signal }) {
      yield { kind: "text", text: "first" };
      await pause(60_000, signal);
    };
    const gone = new AbortController();
    const response = await fetch(`${url}/api/chat`, { method: "POST", body: BODY, signal: gone.signal });
    await response.body!.getReader().read();
    gone.abort();
    expect(await untilIdle()).toBeLessThan(EXCHANGES_MAX);
  });

  test("while the model loads, before any answer", async () => {
    harness.runtime.script = play([{ kind: "text", text: "late" }], 60_000);
    const gone = new AbortController();
    const answer = fetch(`${url}/api/chat`, { method: "POST", body: BODY, signal: gone.signal }).catch(() => "aborted");
    await untilRunning();
    gone.abort();
    expect(await untilIdle()).toBeLessThan(EXCHANGES_MAX);
    expect(await answer).toBe("aborted");
  });

  test("before its request is read", async () => {
    harness.runtime.script = endless(5);
    const request = new Request("http://localhost/api/chat", { method: "POST", body: BODY });
    Object.defineProperty(request, "signal", { value: AbortSignal.abort() });
    const response = await harness.app.handle(request);
    expect(await untilIdle()).toBeLessThan(EXCHANGES_MAX);
    await response.body?.cancel();
  });

  test("while it waits for a whole answer", async () => {
    harness.runtime.script = endless(5);
    const gone = new AbortController();
    const answer = fetch(`${url}/api/chat`, { method: "POST", body: PLAIN, signal: gone.signal }).catch(
      () => "aborted",
    );
    await untilRunning();
    gone.abort();
    expect(await untilIdle()).toBeLessThan(EXCHANGES_MAX);
    await answer;
  });

  test("by cancelling the body of the response", async () => {
    harness.runtime.script = async function* ({ signal }) {
      yield { kind: "text", text: "first" };
      await pause(60_000, signal);
    };
    const response = await harness.post("/api/chat", BODY);
    const reader = response.body!.getReader();
    await reader.read();
    void reader.read();
    await Bun.sleep(5);
    await reader.cancel();
    expect(await untilIdle()).toBeLessThan(EXCHANGES_MAX);
  });

  test("by resetting or half-closing its connection", async () => {
    for (const hangUp of ["destroy", "end"] as const) {
      harness.runtime.script = endless(5);
      const socket = await openRaw(BODY);
      await new Promise((resolve) => socket.once("data", resolve));
      socket[hangUp]();
      expect(await untilIdle()).toBeLessThan(EXCHANGES_MAX);
      socket.destroy();
    }
  });
});

test("a stalled client pauses the model instead of filling memory", async () => {
  let produced = 0;
  harness.runtime.script = async function* () {
    for (;;) {
      produced++;
      yield { kind: "text", text: "x".repeat(10_000) };
    }
  };
  const socket = await openRaw(BODY);
  socket.pause();
  const hasStopped = async (): Promise<boolean> => {
    const before = produced;
    await Bun.sleep(300);
    return produced > 0 && produced === before;
  };
  expect(await eventually(hasStopped)).toBe(true);
  expect(produced).toBeLessThan(5000); // 50 MB: more than sockets and pipes hold, and far less than 300 ms of yielding
  socket.destroy();
  expect(await untilIdle()).toBeLessThan(EXCHANGES_MAX);
});

test("each piece is sent as soon as it exists", async () => {
  harness.runtime.script = async function* ({ signal }) {
    yield { kind: "text", text: "first" };
    await pause(60_000, signal);
  };
  const gone = new AbortController();
  const response = await fetch(`${url}/api/chat`, { method: "POST", body: BODY, signal: gone.signal });
  const { value } = await response.body!.getReader().read();
  expect(new TextDecoder().decode(value)).toContain('"content":"first"');
  gone.abort();
  await untilIdle();
});

/** Number of lines in each chunk of an answer. */
async function linesPerChunk(path: string, body: object): Promise<number[]> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  const text = JSON.stringify(body);
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${text.length}\r\n\r\n`,
  );
  socket.write(text);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part);
  const answer = Buffer.concat(parts).toString();
  const lines: number[] = [];
  for (let at = answer.indexOf("\r\n\r\n") + 4; at < answer.length;) {
    const start = answer.indexOf("\r\n", at) + 2;
    const end = start + parseInt(answer.slice(at, start), 16);
    if (end > start) lines.push(answer.slice(start, end).split("\n").length - 1);
    at = end + 2;
  }
  return lines;
}

test("each line of a fast stream is a separate chunk, the error too", async () => {
  const words = Array.from({ length: 200 }, (_, i) => ({ kind: "text", text: `${i}` }) as const);
  harness.runtime.script = async function* () {
    yield* words;
    throw new Error("the model is gone");
  };
  const failed = Array.from({ length: 201 }, () => 1);
  expect(await linesPerChunk("/api/chat", JSON.parse(BODY))).toEqual(failed);
  expect(await linesPerChunk("/api/generate", { model: "m", prompt: "hi" })).toEqual(failed);
  const steps = await linesPerChunk("/api/create", { model: "new", from: "m" });
  expect(steps).toEqual(steps.map(() => 1));
  expect(steps.length).toBeGreaterThan(1);
});

test("version answers while streams run, and many streams run at once", async () => {
  harness.runtime.script = play(
    [
      { kind: "text", text: "a" },
      { kind: "text", text: "b" },
      { kind: "done", reason: "stop" },
    ],
    20,
  );
  const answers = Array.from({ length: 50 }, () => fetch(`${url}/api/chat`, { method: "POST", body: BODY }));
  expect((await fetch(`${url}/api/version`)).status).toBe(200);
  for (const answer of await Promise.all(answers)) expect((await answer.text()).trim().split("\n")).toHaveLength(3);
});

test("a body with too large a content-length is refused before any of it arrives", async () => {
  const socket = await openRaw("");
  socket.write("POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n");
  const seen: string[] = [];
  socket.on("data", (data) => seen.push(String(data)));
  await eventually(() => seen.join("").includes("413"));
  expect(seen.join("")).toContain("expected at most 67108864 bytes, got 999999999999");
  socket.destroy();
});

test("a request whose body is cut off never reaches the model", async () => {
  const [before, logged] = [harness.runtime.requests.length, harness.logs.length];
  const socket = await openRaw("");
  socket.write(`POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n${BODY}`);
  await Bun.sleep(50);
  socket.destroy();
  const isLogged = (): boolean =>
    harness.logs.slice(logged).some(({ msg, status }) => msg === "request" && status === 499);
  expect(await eventually(isLogged)).toBe(true);
  expect(harness.runtime.requests.length).toBe(before);
});
