/** Two workers of one database that notify each other. */
import { expect, test } from "bun:test";
import { alone, type NewsListener, type Peers } from "../../../../../src/gateway/database/peers.ts";
import { eventually } from "../../../../e2e/hearth.ts";
import { answering } from "../../../../stores.ts";
import { agent } from "../deliveries/fixtures.ts";
import { gate, makeWorkerBench, send } from "./parts.ts";

const WAIT_MS = 30_000;

/** Peers of two nodes, whose news arrive at once. */
function twoNodes(): [Peers, Peers] {
  const listeners: [Set<NewsListener>, Set<NewsListener>] = [new Set(), new Set()];
  const node = (own: 0 | 1): Peers => ({
    ...alone(),
    tell: (topic, id = "", text = "") => listeners[1 - own]!.forEach((listener) => listener(topic, id, text)),
    onNews(listener) {
      listeners[own].add(listener);
      return () => listeners[own].delete(listener);
    },
  });
  return [node(0), node(1)];
}

test("a watcher on another node gets a run's text as it is generated, and can cancel the run", async () => {
  const [here, there] = twoNodes();
  await using at = makeWorkerBench(here);
  const model = gate(at);
  const runId = await send(at, agent("x"));
  await model.begins(runId);
  at.settings.maxConcurrent = 0; // the other node only watches
  const other = at.anotherWorker(there);
  other.start();
  const seen: string[] = [];
  for await (const news of other.watch(runId)) {
    seen.push(news.kind === "text" ? news.text : news.status.state);
    if (seen.length === 1) at.parts.turns.at(-1)!.onText?.("Hel");
    if (seen.length === 2) {
      at.parts.turns.at(-1)!.onText?.("lo");
      expect(await other.cancel(runId)).toBe("stopping");
    }
  }
  expect(seen).toEqual(["running", "Hel", "lo", "cancelled"]);
  await other.stop(0);
});

test("a node that the others have removed claims no run until it has joined again", async () => {
  let isRemoved = true;
  let asked = 0;
  const peers: Peers = {
    ...alone(),
    gone(owners) {
      asked++;
      return answering(isRemoved ? [...owners] : []);
    },
  };
  await using at = makeWorkerBench(peers);
  const runId = await send(at, agent("x"));
  expect(await eventually(() => (at.worker.poke(), asked > 12), WAIT_MS)).toBe(true); // several rounds
  expect(at.parts.turns).toEqual([]);
  isRemoved = false;
  at.worker.poke();
  expect((await at.settled(runId)).state).toBe("succeeded");
});
