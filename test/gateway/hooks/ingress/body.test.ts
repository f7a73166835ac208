import { describe, expect, test } from "bun:test";
import { readBody } from "../../../../src/gateway/hooks/ingress/body.ts";

const LIMITS = { limitBytes: 100_000, timeoutMs: 60_000 };

const messageOf = (chunks: readonly Uint8Array[]) => ({
  headers: new Headers(),
  body: new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  }),
});

test("a body of one chunk is not copied, and one of many is joined without changing the chunks", async () => {
  const chunk = Uint8Array.from({ length: 300 }, (_, i) => i);
  expect((await readBody(messageOf([chunk]), LIMITS)).buffer).toBe(chunk.buffer);
  for (const [count, size] of [
    [2, 300],
    [40, 1000],
    [20_000, 1],
  ] as const) {
    const chunks = Array.from({ length: count }, (_, i) => new Uint8Array(size).fill(i));
    const before = Buffer.concat(chunks);
    expect(Buffer.compare(await readBody(messageOf(chunks), LIMITS), before)).toBe(0);
    expect(Buffer.compare(Buffer.concat(chunks), before)).toBe(0);
  }
  const problem = readBody(messageOf([chunk, chunk]), { ...LIMITS, limitBytes: 599 });
  await expect(problem).rejects.toMatchObject({ problem: "payload_too_large" });
});

describe("a small body of a known length", () => {
  const announced = (bytes: number, received: Promise<Uint8Array>) => ({
    headers: new Headers({ "content-length": `${bytes}` }),
    get body(): never {
      throw new Error("a stream was made");
    },
    bytes: () => received,
  });

  test("is read without a stream", async () => {
    const whole = Uint8Array.of(1, 2, 3);
    expect(await readBody(announced(3, Promise.resolve(whole)), LIMITS)).toBe(whole);
    const tooLong = readBody(announced(4, Promise.resolve(whole)), { ...LIMITS, limitBytes: 3 });
    await expect(tooLong).rejects.toMatchObject({ problem: "payload_too_large" });
  });

  test("is refused if it comes too late or its sender disconnects", async () => {
    const { promise, reject } = Promise.withResolvers<Uint8Array>();
    const late = readBody(announced(3, promise), { ...LIMITS, timeoutMs: 10 });
    await expect(late).rejects.toMatchObject({ problem: "body_timeout", headers: { connection: "close" } });
    reject(new Error("closed")); // its caller has given up
    const gone = readBody(announced(3, Promise.reject(new Error("closed"))), LIMITS);
    await expect(gone).rejects.toMatchObject({ problem: "client_gone" });
  });

  test("is read as a stream if it is large", async () => {
    const chunk = new Uint8Array(70_000).fill(7);
    const message = { ...messageOf([chunk]), headers: new Headers({ "content-length": "70000" }) };
    const bytes = () => Promise.reject(new Error("all at once"));
    expect((await readBody({ ...message, bytes }, LIMITS)).buffer).toBe(chunk.buffer);
  });
});

describe("a body without enough free memory is refused with too_busy", () => {
  const limited = (room: number) => ({ ...LIMITS, hold: (bytes: number) => (room -= bytes) >= 0 });
  const busy = { problem: "too_busy", headers: { "retry-after": "1" } };

  test("while it is streamed", async () => {
    const chunks = [new Uint8Array(300), new Uint8Array(300)];
    expect(await readBody(messageOf(chunks), limited(600))).toHaveLength(600);
    await expect(readBody(messageOf(chunks), limited(599))).rejects.toMatchObject(busy);
  });

  test("by its announced length if it is small", async () => {
    const message = { ...messageOf([]), headers: new Headers({ "content-length": "3" }) };
    const bytes = async () => Uint8Array.of(1, 2, 3);
    expect(await readBody({ ...message, bytes }, limited(3))).toHaveLength(3);
    await expect(readBody({ ...message, bytes }, limited(2))).rejects.toMatchObject(busy);
  });

  test("by the limit of its decompressed size if it is compressed", async () => {
    const packed = Bun.gzipSync(new Uint8Array(1000));
    const message = () => ({ ...messageOf([packed]), headers: new Headers({ "content-encoding": "gzip" }) });
    const room = packed.length + LIMITS.limitBytes;
    expect(await readBody(message(), limited(room))).toHaveLength(1000);
    await expect(readBody(message(), limited(room - 1))).rejects.toMatchObject(busy);
  });
});
