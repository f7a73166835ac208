/** A heartbeat on a clock that tests move, with its statuses and sent replies. */
import { enqueueEvent, waitingEvents } from "../../../src/gateway/agent/events.ts";
import { Heartbeat, type HeartbeatStatus } from "../../../src/gateway/agent/heartbeat.ts";
import type { HeartbeatDelivery } from "../../../src/gateway/agent/heartbeat-outcome.ts";
import { makeLogger } from "../../../src/base/log.ts";
import { external } from "../../../src/gateway/agent/boundary/tainted-text.ts";
import { alone, type Lease, type Peers } from "../../../src/gateway/database/peers.ts";
import type { Target } from "../../../src/gateway/channels/channel.ts";
import { afterTest } from "../../cleanups.ts";
import { answering } from "../../stores.ts";
import { MAIN, settingsOf, testAgent, type TestAgent, type TestAgentOptions } from "./parts.ts";
import type { Script } from "./scripted-runtime.ts";

export const MINUTE = 60_000;
export const EVERY = 30 * MINUTE;

export interface TestHeart extends TestAgent {
  readonly heart: Heartbeat;
  readonly peers: Peers;
  readonly sent: { target: Target; text: string; groupId: string }[];
  /** The next status; each is returned once. */
  next(): Promise<HeartbeatStatus>;
  readonly statuses: HeartbeatStatus[];
  wake(text: string, more?: { wantsHeartbeat?: boolean; isDelivered?: boolean }): Promise<void>;
}

export function testHeart(
  script: Script,
  options: TestAgentOptions & { target?: Target | { reason: string }; lease?: Lease } = {},
): TestHeart {
  const test = testAgent(script, options);
  const sent: TestHeart["sent"] = [];
  const { target = { channel: "telegram", to: "42" } } = options;
  const { lease } = options;
  const peers: Peers = lease ? { ...alone(), lease: () => lease } : alone();
  const heart = new Heartbeat({
    peers,
    agent: test.agent,
    store: test.store,
    clock: test.clock,
    settings: test.parts.settings,
    delivery: {
      resolveTarget: () => answering(target),
      addReply: (reply) => answering(void sent.push(reply)),
      sendReplies: () => {},
    },
    log: makeLogger({ write: () => {}, now: test.clock.now, debug: true }),
  });
  afterTest(() => heart.stop());
  const statuses: HeartbeatStatus[] = [];
  const waiting: ((status: HeartbeatStatus) => void)[] = [];
  const given = { count: 0 };
  heart.onStatus((status) => {
    statuses.push(status);
    const first = waiting.shift();
    if (first) first(status);
  });
  return {
    ...test,
    heart,
    peers,
    sent,
    statuses,
    next: () => {
      const found = statuses[given.count++];
      return found ? Promise.resolve(found) : new Promise((resolve) => waiting.push(resolve));
    },
    async wake(text, more = {}) {
      const event = { sessionKey: MAIN, text: external(text), isWrapped: false, source: "test", wantsHeartbeat: true };
      await test.store.write(() => enqueueEvent({ ...event, now: test.clock.now(), ...more }, { eventsMax: 100 }));
    },
  };
}

export const waitingCount = async ({ store }: TestHeart): Promise<number> =>
  (await store.read(() => waitingEvents({ sessionKey: MAIN, limit: 100 }))).length;
export const nowhereToSend: HeartbeatDelivery = {
  resolveTarget: () => answering({ reason: "none" }),
  addReply: () => answering(undefined),
  sendReplies() {},
};
export const withHeartbeat = (heartbeat: object) => settingsOf({ defaults: { heartbeat } });
