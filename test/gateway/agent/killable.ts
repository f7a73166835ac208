/**
 * A process that queues numbered events and lets the heartbeat answer them, until it is killed. On `drain` it queues no
 * more, answers the waiting events and exits. It says when it has queued its first event, `ready`, and when a turn was
 * stored, `answered`. Its replies are rows, written in the transaction that stores the turn.
 */
import { makeAgent } from "../../../src/gateway/agent/agent.ts";
import { countEvents, enqueueEvent } from "../../../src/gateway/agent/events.ts";
import { Heartbeat } from "../../../src/gateway/agent/heartbeat.ts";
import { agentMigrations } from "../../../src/gateway/agent/tables.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { makeLogger } from "../../../src/base/log.ts";
import { external } from "../../../src/gateway/agent/boundary/tainted-text.ts";
import { execute, queryOne } from "../../../src/gateway/database/store.ts";
import { alone } from "../../../src/gateway/database/peers.ts";
import { answering, openStore } from "../../stores.ts";
import { MAIN, settingsOf } from "./parts.ts";
import { scriptedRuntime } from "./scripted-runtime.ts";

const OWN = `
  CREATE TABLE counter (next INTEGER NOT NULL) STRICT;
  INSERT INTO counter VALUES (0);
  CREATE TABLE sent (group_id TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;
`;
const [path = "", task] = process.argv.slice(2);
const store = openStore([...agentMigrations, { name: "test", sql: OWN }], path);
const clock = systemClock;
const settings = () => settingsOf({ defaults: { heartbeat: { every: 0 } } }, { maxEvents: 100_000 });
const runtime = scriptedRuntime(() => ({ text: `answer ${crypto.randomUUID()}`, until: Bun.sleep(5) }), {
  ctxLen: 1_000_000,
});
const agent = makeAgent({ runtime, store, clock, settings, modelNames: async () => ["hearth:latest"] });
const heart = new Heartbeat({
  peers: alone(),
  agent,
  store,
  clock,
  settings,
  delivery: {
    resolveTarget: () => answering({ channel: "telegram", to: "42" }),
    *addReply({ groupId, text }) {
      yield* execute("INSERT INTO sent VALUES ($1, $2)", groupId, text);
    },
    sendReplies: () => {},
  },
  log: makeLogger({ write: () => {}, now: Date.now, debug: false }),
});
heart.onStatus(({ kind }) => void (kind === "sent" && process.stdout.write("answered\n")));
await heart.start();

/** Queues an event with a number that is new in the same transaction. */
const queue = (): Promise<void> =>
  store.write(function* () {
    const { next } = (yield* queryOne<{ next: number }>("UPDATE counter SET next = next + 1 RETURNING next"))!;
    yield* enqueueEvent(
      {
        sessionKey: MAIN,
        text: external(`event number ${next};`),
        isWrapped: false,
        source: "test",
        wantsHeartbeat: true,
        now: clock.now(),
      },
      { eventsMax: settings().session.maxEvents },
    );
  });

if (task === "drain") {
  while ((await store.read(() => countEvents(MAIN))) > 0) await Bun.sleep(10);
  await heart.stop();
  process.exit(0);
}
await queue();
process.stdout.write("ready\n");
for (;;) {
  heart.request("wake");
  await Bun.sleep(3);
  await queue();
}
