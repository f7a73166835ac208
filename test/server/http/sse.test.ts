import { afterEach, describe, expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import { sse, type Frame } from "../../../src/server/http/sse.ts";
import { streamed } from "../../../src/server/http/stream.ts";

const failed = (error: unknown): Frame[] => [{ event: "error", data: { message: (error as Error).message } }];
const NOTHING: readonly Frame[] = [];
const servers: { stop(force: boolean): Promise<void> }[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop(true))));

/** Serves one stream on a socket. */
function serve(frames: (signal: AbortSignal) => AsyncGenerator<Frame, void, void>, keepAliveMs = 60_000) {
  const ends: unknown[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => {
      const gone = new AbortController();
      request.signal.addEventListener("abort", () => gone.abort());
      const onEnd = (error?: unknown): void => void ends.push(error);
      try {
        return await streamed(frames(gone.signal), sse(failed, { keepAliveMs }), { gone, onEnd });
      } catch (error) {
        return new Response((error as Error).message, { status: 418 });
      }
    },
  });
  servers.push(server);
  return { url: `http://127.0.0.1:${server.port}/`, ends };
}

async function until(check: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2000 && !check(); tries++) await Bun.sleep(5);
  expect(check()).toBe(true);
}

describe("server-sent events", () => {
  test("are data frames with an optional name, with one data line per line of text", async () => {
    const { url, ends } = serve(async function* () {
      yield { data: { a: 1 } };
      yield { event: "ping", data: { text: "one\ntwo" } };
      yield { data: { text: "a\u2028b\u2029c\u0085d" } }; // ends of lines to Python's clients
      yield { data: "one\ntwo\r\nthree" };
      yield { data: "[DONE]" };
    });
    const response = await fetch(url);
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-cache");
    expect(await response.text()).toBe(
      'data: {"a":1}\n\nevent: ping\ndata: {"text":"one\\ntwo"}\n\n' +
        'data: {"text":"a\\u2028b\\u2029c\\u0085d"}\n\ndata: one\ndata: two\ndata: three\n\ndata: [DONE]\n\n',
    );
    expect(ends).toEqual([undefined]);
  });

  test("end with the protocol's error frame if the stream fails", async () => {
    const { url, ends } = serve(async function* () {
      yield { data: { a: 1 } };
      throw new AppError("runner", "model runner has unexpectedly stopped");
    });
    const response = await fetch(url);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(
      'data: {"a":1}\n\nevent: error\ndata: {"message":"model runner has unexpectedly stopped"}\n\n',
    );
    expect(ends).toEqual([expect.any(AppError)]);
  });

  test("give a failure before the first frame its own status", async () => {
    const { url } = serve(async function* () {
      yield* NOTHING;
      throw new AppError("not_found", "no such model");
    });
    const response = await fetch(url);
    expect([response.status, await response.text()]).toEqual([418, "no such model"]);
  });
});

describe("a silent model", () => {
  test("gets comments before the first frame and between frames, in order", async () => {
    const steps = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { url } = serve(async function* () {
      await steps[0]!.promise;
      yield { data: "one" };
      await steps[1]!.promise;
      yield { data: "two" };
    }, 10);
    const response = await fetch(url);
    let text = "";
    let released = 0;
    for await (const chunk of response.body!) {
      text += new TextDecoder().decode(chunk);
      const comments = text.split(": keep-alive\n\n").length - 1;
      if (comments >= 3 && released === 0) steps[released++]!.resolve();
      if (/one\n\n(: keep-alive\n\n){2}/.test(text) && released === 1) steps[released++]!.resolve();
    }
    expect(text).toMatch(/^(: keep-alive\n\n){3,}data: one\n\n(: keep-alive\n\n){2,}data: two\n\n$/);
  });

  test("ends with the protocol's error frame if it then fails", async () => {
    const isHeard = Promise.withResolvers<void>();
    const { url } = serve(async function* () {
      yield* NOTHING;
      await isHeard.promise;
      throw new AppError("runner", "no memory");
    }, 10);
    let text = "";
    for await (const chunk of (await fetch(url)).body!) {
      text += new TextDecoder().decode(chunk);
      isHeard.resolve();
    }
    expect(text).toMatch(/^(: keep-alive\n\n)+event: error\ndata: {"message":"no memory"}\n\n$/);
  });

  test("stops when its client disconnects between comments", async () => {
    let stopped = false;
    const { url, ends } = serve(async function* (signal) {
      yield* NOTHING;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      stopped = true;
    }, 10);
    const gone = new AbortController();
    const response = await fetch(url, { signal: gone.signal });
    await response.body!.getReader().read();
    gone.abort();
    await until(() => stopped);
    expect(ends).toEqual([expect.objectContaining({ code: "cancelled" })]);
  });
});

test("a client that disconnects before the first frame ends the producer of the frames", async () => {
  const gone = new AbortController();
  let hasEnded = false;
  const ends: unknown[] = [];
  const frames = async function* (): AsyncGenerator<Frame, void, void> {
    try {
      gone.abort(); // it ignores signals
      yield { data: "first" };
      yield { data: "second" };
    } finally {
      hasEnded = true;
    }
  };
  const response = await streamed(frames(), sse(failed), { gone, onEnd: (error) => void ends.push(error) });
  await Bun.sleep(1);
  expect([hasEnded, ends.length]).toEqual([true, 1]);
  expect(ends[0]).toMatchObject({ code: "cancelled" });
  await response.body?.cancel();
});
