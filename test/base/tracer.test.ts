/** Spans as a collector gets them: a small receiver of OTLP on loopback. */
import { expect, test } from "bun:test";
import { makeLogger } from "../../src/base/log.ts";
import { Tracer, type TracerOptions } from "../../src/base/tracer.ts";
import { parseTraceparent } from "../../src/base/traceparent.ts";
import { eventually } from "../e2e/hearth.ts";
import { afterTest } from "../cleanups.ts";
import { startCollector } from "../otlp-collector.ts";

const PARENT = parseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")!;
const UNSAMPLED = { ...PARENT, flags: "00" };
const ONE = { name: "one", kind: "server", attributes: { n: 1, half: 0.5, list: ["a"], none: undefined } } as const;

function tracerTo(url: string, more: Partial<TracerOptions> = {}): { tracer: Tracer; logs: string[] } {
  const logs: string[] = [];
  const log = makeLogger({ write: (line) => void logs.push(line), now: Date.now, debug: false });
  const tracer = new Tracer({
    url: `${url}/v1/traces`,
    headers: { "x-key": "k" },
    resource: { "service.name": "test" },
    sampling: { share: 1, isParentBased: true },
    timeoutMs: 60_000,
    delayMs: 1,
    queueMax: 4,
    batchMax: 2,
    version: "1.2.3",
    log,
    now: () => 1_700_000_000_000.25,
    ...more,
  });
  afterTest(() => tracer.close());
  return { tracer, logs };
}

test("a span has its trace, attributes, times and error", async () => {
  const { url, spans, requests } = startCollector();
  const { tracer } = tracerTo(url);
  tracer.end(tracer.begin(PARENT, 1_700_000_000_000), { ...ONE, error: "no" });
  expect(await eventually(() => spans.length === 1)).toBe(true);
  expect(spans[0]).toEqual({
    traceId: PARENT.traceId,
    spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
    parentSpanId: PARENT.parentId,
    name: "one",
    kind: 2,
    startTimeUnixNano: "1700000000000000000",
    endTimeUnixNano: "1700000000000250000",
    attributes: [
      { key: "n", value: { intValue: "1" } },
      { key: "half", value: { doubleValue: 0.5 } },
      { key: "list", value: { arrayValue: { values: [{ stringValue: "a" }] } } },
    ],
    status: { code: 2, message: "no" },
  });
  expect(requests[0]!.path).toBe("/v1/traces");
  expect(requests[0]!.headers.get("x-key")).toBe("k");
  const [{ resource, scopeSpans }] = requests[0]!.body.resourceSpans;
  expect(resource.attributes).toContainEqual({ key: "service.name", value: { stringValue: "test" } });
  expect(scopeSpans[0].scope).toEqual({ name: "hearth", version: "1.2.3" });
});

test("sampling follows the parent's decision, or the share without one", async () => {
  const { url, spans } = startCollector();
  const count = async (sampling: TracerOptions["sampling"], parent: typeof PARENT | undefined): Promise<number> => {
    const before = spans.length;
    const { tracer } = tracerTo(url, { sampling, queueMax: 1000, batchMax: 1000 });
    for (let i = 0; i < 100; i++) tracer.end(tracer.begin(parent), ONE);
    await tracer.close();
    return spans.length - before;
  };
  expect(await count({ share: 0, isParentBased: true }, PARENT)).toBe(100);
  expect(await count({ share: 1, isParentBased: true }, UNSAMPLED)).toBe(0);
  expect(await count({ share: 1, isParentBased: false }, UNSAMPLED)).toBe(100);
  expect(await count({ share: 0, isParentBased: true }, undefined)).toBe(0);
  const half = await count({ share: 0.5, isParentBased: true }, undefined);
  expect(half).toBeWithin(10, 91); // drawn: 2^-60 to be outside
});

test("spans of a failed export are sent again; spans beyond the buffer are dropped", async () => {
  const receiver = startCollector();
  receiver.status = 503;
  const { tracer, logs } = tracerTo(receiver.url);
  for (let i = 0; i < 10; i++) tracer.end(tracer.begin(undefined), { ...ONE, name: `${i}` });
  expect(await eventually(() => receiver.requests.length > 2)).toBe(true);
  expect(receiver.spans).toEqual([]);
  receiver.status = 200;
  expect(await eventually(() => receiver.spans.length === 4)).toBe(true);
  expect(new Set(receiver.spans.map(({ name }) => name)).size).toBe(4);
  expect(logs).toHaveLength(1); // one line for all tries
  expect(logs[0]).toContain("answered 503");
});

test("spans that a collector refuses with status 400 are not sent again", async () => {
  const receiver = startCollector();
  receiver.status = 400;
  const { tracer } = tracerTo(receiver.url);
  tracer.end(tracer.begin(undefined), ONE);
  await tracer.close();
  receiver.status = 200;
  tracer.end(tracer.begin(undefined), { ...ONE, name: "two" });
  await tracer.close();
  expect(receiver.spans.map(({ name }) => name)).toEqual(["two"]);
});

test("an unreachable collector costs only the spans and one line of log", async () => {
  const { tracer, logs } = tracerTo("http://127.0.0.1:1", { delayMs: 60_000 });
  tracer.end(tracer.begin(undefined), ONE);
  await tracer.close();
  expect(logs).toHaveLength(1);
});

test("a failure is logged again after a minute, and at once if the clock was set back", async () => {
  const receiver = startCollector();
  let nowMs = 1_700_000_000_000;
  const { tracer, logs } = tracerTo(receiver.url, { delayMs: 60_000, now: () => nowMs });
  const send = async (status: number): Promise<void> => {
    receiver.status = status;
    tracer.end(tracer.begin(undefined), ONE);
    await tracer.close();
  };
  const counts: number[] = [];
  for (const passedMs of [0, 59_999, 1, -3_600_000]) {
    nowMs += passedMs;
    await send(400);
    counts.push(logs.length);
    await send(200);
  }
  expect(counts).toEqual([1, 1, 2, 3]);
});
