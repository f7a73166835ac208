/** Very many webhooks at once, through real sockets. */
import { expect, test } from "bun:test";
import { json, startGateway } from "../gateway/operate/world.ts";
import { queryAll, queryOne } from "../../src/gateway/database/store.ts";

test("1,000 wakes and 200 agent calls at once are all answered and run, in order within each session", async () => {
  const world = await startGateway({ script: (_, i) => ({ text: `answer ${i}` }) });
  const wakes = Array.from({ length: 1000 }, (_, i) =>
    world.hook("wake", { text: `event ${i}`, mode: "next-heartbeat" }),
  );
  const agents = Array.from({ length: 200 }, (_, i) =>
    world.hook("agent", {
      message: `question ${i}`,
      sessionKey: `hook:s${i % 8}`,
      deliver: false,
      wakeMode: "next-heartbeat",
    }),
  );
  const answers = await Promise.all([...wakes, ...agents]);
  expect(new Set(answers.slice(0, 1000).map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(answers.slice(1000).map(({ status }) => status))).toEqual(new Set([202]));
  const runIds = (await Promise.all(answers.map(json))).map(({ runId }) => runId as string);
  expect(new Set(runIds).size).toBe(1200);
  for (const id of runIds) await (await world.hook(`runs/${id}/events`)).text(); // until it is over
  const { store } = world.gateway;
  const states = await store.read(() => queryAll("SELECT state, count(*) AS n FROM runs GROUP BY state"));
  expect(states).toEqual([{ state: "succeeded", n: 1200 }]);
  const events = await store.read(() => queryOne<{ n: number }>("SELECT count(*) AS n FROM session_events"));
  expect(events).toEqual({ n: 1200 }); // 1,000 wakes, 200 summaries
  const order = async (sql: string): Promise<Map<string, string[]>> => {
    const rows = await store.read(() => queryAll<{ id: string; session: string }>(sql));
    return new Map([...Map.groupBy(rows, (row) => row.session)].map(([key, own]) => [key, own.map(({ id }) => id)]));
  };
  const accepted = await order("SELECT id, session_key AS session FROM runs WHERE kind = 'agent' ORDER BY seq");
  const stored = await order(
    "SELECT run_id AS id, session_key AS session FROM session_entries GROUP BY run_id ORDER BY min(seq)",
  );
  expect(accepted.size).toBe(8);
  for (const [session, ids] of accepted) expect(stored.get(session)).toEqual(ids);
}, 300_000);
