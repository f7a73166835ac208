/**
 * A process that may be killed at any moment: accepts requests from standard input, runs them by a worker, and sends
 * replies one at a time, each marked before it is sent. It logs the effects outside of its database: started turns and
 * sent messages.
 *
 *   bun killable.ts DATABASE LOG LIFE [hangs]
 *
 * `hangs`: no turn ends, and it says that one has begun.
 */
import { appendFileSync } from "node:fs";
import { execute, queryAll, queryOne } from "../../../../../src/gateway/database/store.ts";
import { alone } from "../../../../../src/gateway/database/peers.ts";
import { makeDeliveries } from "../../../../../src/gateway/hooks/queue/deliveries/deliveries.ts";
import { deliveryMigrations } from "../../../../../src/gateway/hooks/queue/deliveries/tables.ts";
import { Worker } from "../../../../../src/gateway/hooks/queue/worker/worker.ts";
import { testRng } from "../../../../seed.ts";
import { openStore } from "../../../../stores.ts";
import { agent, request, wake } from "../deliveries/fixtures.ts";
import { makeParts, ok, partMigrations } from "./parts.ts";

const [path, logPath, life, hangs] = process.argv.slice(2) as [string, string, string, string?];
const random = testRng(`life ${life}`).float;
const log = (line: object): void => appendFileSync(logPath, `${JSON.stringify(line)}\n`);
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

const SENDING = { name: "sending", sql: "ALTER TABLE test_replies ADD COLUMN sending INTEGER" };
const store = openStore([...deliveryMigrations, ...partMigrations, SENDING], path);
const parts = makeParts(store);
const stored = await store.read(() => queryAll<{ id: string }>("SELECT id FROM runs WHERE answer IS NOT NULL"));
log({ boot: stored.map((row) => row.id) });
parts.answer = async ({ runId }) => {
  log({ turn: runId });
  if (hangs) say({ turn: runId });
  await (hangs ? new Promise(() => {}) : Bun.sleep(random() * 20));
  return ok(`answer ${runId}`);
};

// messages under way when the last process died may have arrived
await store.write(() =>
  execute(`UPDATE test_replies SET outcome = '{"kind":"unknown"}' WHERE sending = 1 AND outcome IS NULL`),
);
parts.ports.onReplySettled(() => {});
const next = () =>
  store.read(() => queryOne<{ group_id: string }>("SELECT group_id FROM test_replies WHERE outcome IS NULL LIMIT 1"));
const deliver = async (): Promise<void> => {
  for (let reply = await next(); reply; reply = await next()) {
    const id = reply.group_id;
    await store.write(() => execute("UPDATE test_replies SET sending = 1 WHERE group_id = $1", id));
    log({ send: id });
    await Bun.sleep(random() * 5);
    await parts.settle(id, { kind: "sent" });
  }
};
let delivering: Promise<void> | undefined;
const sendReplies = (): void => void (delivering ??= deliver().finally(() => (delivering = undefined)));
const worker = new Worker({
  store,
  peers: alone(),
  ports: { ...parts.ports, sendReplies },
  settings: () => ({
    maxConcurrent: 4,
    maxConcurrentOf: () => undefined,
    maxAttempts: 1000,
    callbacks: { secret: undefined, allowPrivate: true },
  }),
  log: { debug: () => {}, info: () => {}, warn: () => {}, error: (msg, fields) => log({ error: msg, ...fields }) },
  now: Date.now,
  random,
});
const deliveries = makeDeliveries({
  store,
  settings: () => ({ maxQueued: 10_000, maxQueuedOf: () => 10_000, keysMs: 3_600_000, retentionMs: 3_600_000 }),
  sessionKeyOf: ({ requested, runId }) => requested ?? runId,
  posting: () => worker.posting(),
  now: Date.now,
});
worker.start();
sendReplies();
say({ ready: true });

async function accept(key: string): Promise<void> {
  const n = Number(key);
  const action = n % 3 === 0 ? wake(key) : agent(key, { name: key, deliver: n % 3 === 1, sessionKey: `hook:${n % 5}` });
  const result = await deliveries.accept(request({ now: Date.now(), idempotencyKey: key, actions: [action] }));
  say({ key, kind: result.kind, runIds: "runIds" in result ? result.runIds : [] });
}

for await (const line of console) {
  const { accept: key } = JSON.parse(line) as { accept?: string };
  if (key !== undefined) void accept(key);
  else {
    sendReplies();
    const { pendingReplies, byState } = await deliveries.stats();
    say({ open: (byState["queued"] ?? 0) + (byState["running"] ?? 0) + pendingReplies });
  }
}
