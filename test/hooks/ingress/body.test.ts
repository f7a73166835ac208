import { expect, test } from "bun:test";
import { readBody } from "../../../src/hooks/ingress/body.ts";

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

test("a body of one chunk is that chunk; one of many is whole, and leaves the chunks as they are", async () => {
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
