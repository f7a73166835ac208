/** A gateway database in a temporary folder, and requests to store in it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Migration } from "../../../../../src/gateway/database/database.ts";
import { external } from "../../../../../src/gateway/agent/boundary/tainted-text.ts";
import type { Transaction, Store } from "../../../../../src/gateway/database/store.ts";
import type { AgentAction, WakeAction } from "../../../../../src/gateway/hooks/action.ts";
import type { Posting } from "../../../../../src/gateway/hooks/queue/deliveries/posting.ts";
import type { AcceptRequest } from "../../../../../src/gateway/hooks/queue/deliveries/request.ts";
import {
  makeDeliveries,
  type Deliveries,
  type DeliverySettings,
} from "../../../../../src/gateway/hooks/queue/deliveries/deliveries.ts";
import { outboxMigrations } from "../../../../../src/gateway/channels/outbox/tables.ts";
import { deliveryMigrations } from "../../../../../src/gateway/hooks/queue/deliveries/tables.ts";
import { answering, openStore } from "../../../../stores.ts";

export const START = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

export interface Bench extends AsyncDisposable {
  readonly path: string;
  readonly store: Store;
  readonly deliveries: Deliveries;
  readonly clock: { now: number };
  readonly settings: { -readonly [Key in keyof DeliverySettings]: DeliverySettings[Key] };
  queued: number;
  posting: () => Transaction<Posting>;
}

/** For tests without a worker. */
export const postsNothing: Posting = { take: () => false, store: () => answering(undefined), after: () => {} };

/**
 * @param path of an existing database; absent: a new one, deleted with the bench
 * @param more tables of the test's own
 */
export function makeBench({ path, more = [] }: { path?: string; more?: readonly Migration[] } = {}): Bench {
  const folder = path === undefined ? mkdtempSync(join(tmpdir(), "hearth-deliveries-")) : undefined;
  const file = path ?? join(folder!, "gateway.db");
  const store = openStore([...deliveryMigrations, ...outboxMigrations, ...more], file);
  const clock = { now: START };
  const settings = {
    maxQueued: 10_000,
    maxQueuedOf: () => 10_000,
    keysMs: 24 * HOUR_MS,
    retentionMs: 14 * 24 * HOUR_MS,
  };
  const counted = <P extends Posting>(posting: P): P => ({
    ...posting,
    after(...runs: Parameters<Posting["after"]>) {
      bench.queued++;
      posting.after(...runs);
    },
  });
  const bench: Bench = {
    path: file,
    store,
    clock,
    settings,
    queued: 0,
    posting: () => answering(postsNothing),
    deliveries: makeDeliveries({
      store,
      settings: () => settings,
      sessionKeyOf: ({ requested, runId }) => (requested ?? `hook:${runId}`).toLowerCase(),
      *posting() {
        return counted(yield* bench.posting());
      },
      now: () => clock.now,
    }),
    async [Symbol.asyncDispose]() {
      await store.close();
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
  return bench;
}

export const wake = (text: string, changes: Partial<WakeAction> = {}): WakeAction => ({
  kind: "wake",
  text: external(text),
  mode: "now",
  isWrapped: true,
  ...changes,
});

export const agent = (message: string, changes: Partial<AgentAction> = {}): AgentAction => ({
  kind: "agent",
  message: external(message),
  name: "Hook",
  wakeMode: "now",
  deliver: false,
  channel: "last",
  tools: [],
  isWrapped: true,
  ...changes,
});

export const request = (changes: Partial<AcceptRequest> = {}): AcceptRequest => ({
  requestId: "request-1",
  path: "wake",
  auth: { kind: "token", id: "default" },
  bodySha256: "aa".repeat(32),
  bodyBytes: 12,
  headers: { "user-agent": "curl" },
  actions: [wake("ping")],
  now: START,
  respond: (runIds) => ({
    status: 200,
    body: { ok: true, runId: runIds[0]!, runIds: [...runIds], requestId: "request-1" },
  }),
  ...changes,
});
