import { expect, test } from "bun:test";
import type { HookAction } from "../../../../../src/gateway/hooks/action.ts";
import type { Accepted } from "../../../../../src/gateway/hooks/queue/deliveries/accept.ts";
import { acceptedResponse } from "../../../../../src/gateway/hooks/ingress/reply.ts";
import { agent, type Bench, makeBench, request, START, wake } from "./fixtures.ts";
import { queryOne } from "../../../../../src/gateway/database/store.ts";

const DAY_MS = 86_400_000;

async function accept(bench: Bench, actions: readonly HookAction[], more: object = {}): Promise<readonly string[]> {
  const result: Accepted = await bench.deliveries.accept(request({ mappingId: "mail", actions, ...more }));
  return result.kind === "accepted" ? result.runIds : expect.unreachable(`not accepted: ${result.kind}`);
}

const mail = (itemId: string | undefined) => agent("mail", itemId === undefined ? {} : { itemId });
const count = async (bench: Bench, table: string): Promise<number> =>
  (await bench.store.read(() => queryOne<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)))!.n;

test("a repeated item keeps its run, and new items get new ones", async () => {
  await using bench = makeBench();
  const [one, two] = await accept(bench, [mail("1"), mail("2")]);
  const again = await accept(bench, [mail("2"), mail("3"), mail("1")]);
  expect(again).toEqual([two!, expect.any(String), one!]);
  expect(await count(bench, "runs")).toBe(3);
});

test("equal items of one request become one run", async () => {
  await using bench = makeBench();
  const [one, two] = await accept(bench, [mail("1"), mail("1")]);
  expect(two).toBe(one!);
  expect(await count(bench, "runs")).toBe(1);
});

test("every item without an id becomes a run", async () => {
  await using bench = makeBench();
  await accept(bench, [mail(undefined), mail(undefined)]);
  await accept(bench, [mail(undefined)]);
  expect(await count(bench, "runs")).toBe(3);
});

test("equal ids of different mappings are different items", async () => {
  await using bench = makeBench();
  await accept(bench, [mail("1")]);
  await accept(bench, [mail("1")], { mappingId: "other" });
  expect(await count(bench, "runs")).toBe(2);
});

test("an item is known after a restart", async () => {
  await using bench = makeBench();
  const first = await accept(bench, [mail("1")]);
  await using restarted = makeBench({ path: bench.path });
  expect(await accept(restarted, [mail("1")])).toEqual(first);
});

test("an item is forgotten when its key expires", async () => {
  await using bench = makeBench();
  bench.settings.keysMs = DAY_MS;
  await accept(bench, [mail("1")]);
  await accept(bench, [mail("1")], { now: START + DAY_MS - 1 });
  expect(await count(bench, "runs")).toBe(1);
  await accept(bench, [mail("1")], { now: START + DAY_MS });
  expect(await count(bench, "runs")).toBe(2);
  bench.clock.now = START + 3 * DAY_MS;
  await bench.deliveries.prune();
  expect(await count(bench, "items")).toBe(0);
});

test("a full queue stores no items", async () => {
  await using bench = makeBench();
  bench.settings.maxQueued = 1;
  await bench.deliveries.accept(request({ actions: [mail("0")] }));
  expect(await bench.deliveries.accept(request({ actions: [mail("1")] }))).toMatchObject({ kind: "full" });
  expect(await count(bench, "items")).toBe(1); // the accepted one
});

test("an answer has each run id once, and no run id of a notice", async () => {
  await using bench = makeBench();
  const answered = async (actions: readonly HookAction[]): Promise<unknown> => {
    const respond = (runIds: readonly string[]) => acceptedResponse(actions, { runIds, requestId: "r", warnings: [] });
    const accepted = await bench.deliveries.accept(request({ actions, respond }));
    if (accepted.kind !== "accepted") throw new Error(accepted.kind);
    const { runIds = [], dispatched, runId } = accepted.response.body;
    expect([...accepted.runIds]).toEqual(runIds.length > 0 ? runIds : [runId]);
    return [runIds.length, new Set(runIds).size, dispatched];
  };
  const item = (itemId: string) => agent("x", { itemId });
  const notice = wake("some were left out", { isNotice: true });
  expect(await answered([item("a"), item("b"), item("a")])).toEqual([2, 2, 2]);
  expect(await answered([item("c"), item("c")])).toEqual([0, 0, undefined]);
  expect(await answered([item("d"), item("e"), notice])).toEqual([2, 2, 2]);
  expect(await answered([notice])).toEqual([0, 0, undefined]);
});
