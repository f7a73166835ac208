/** A gateway database in a temporary folder, and requests to put into it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase, Writer, type Database } from "../../../src/base/database.ts";
import { external } from "../../../src/base/passage.ts";
import type { AgentAction, WakeAction } from "../../../src/hooks/action.ts";
import type { AcceptRequest } from "../../../src/hooks/deliveries/accept.ts";
import { makeDeliveries, type Deliveries, type DeliverySettings } from "../../../src/hooks/deliveries/deliveries.ts";
import { deliveryMigrations } from "../../../src/hooks/deliveries/tables.ts";

export const START = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

export interface Bench extends AsyncDisposable {
  readonly path: string;
  readonly db: Database;
  readonly writer: Writer;
  readonly deliveries: Deliveries;
  readonly clock: { now: number };
  readonly settings: { -readonly [Key in keyof DeliverySettings]: DeliverySettings[Key] };
  queued: number;
  onQueued: (db: Database) => () => void;
}

/** @param path of a database that exists already; absent: a new one, which goes with the bench */
export function makeBench({ path }: { path?: string } = {}): Bench {
  const folder = path === undefined ? mkdtempSync(join(tmpdir(), "hearth-deliveries-")) : undefined;
  const file = path ?? join(folder!, "gateway.db");
  const db = openDatabase(file, deliveryMigrations);
  const clock = { now: START };
  const settings = {
    maxQueued: 10_000,
    maxQueuedOf: () => 10_000,
    keysMs: 24 * HOUR_MS,
    retentionMs: 14 * 24 * HOUR_MS,
  };
  const writer = new Writer(db);
  const bench: Bench = {
    path: file,
    db,
    writer,
    clock,
    settings,
    queued: 0,
    onQueued: () => () => {},
    deliveries: makeDeliveries({
      db,
      writer,
      settings: () => settings,
      sessionKeyOf: ({ requested, runId }) => (requested ?? `hook:${runId}`).toLowerCase(),
      onQueued: (at) => {
        const after = bench.onQueued(at);
        return () => {
          bench.queued++;
          after();
        };
      },
      now: () => clock.now,
    }),
    async [Symbol.asyncDispose]() {
      await writer.write(() => undefined); // what is under way
      db.close();
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
