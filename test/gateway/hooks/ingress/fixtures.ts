/** An ingress with real mappings and deliveries behind it, in an in-memory database; models and channels are lists. */
import { agentsSchema, sessionSchema } from "../../../../src/gateway/agent/config.ts";
import { hookSession } from "../../../../src/gateway/agent/session-key.ts";
import type { Logger } from "../../../../src/base/log.ts";
import { queryAll, type Store } from "../../../../src/gateway/database/store.ts";
import type { HookAction } from "../../../../src/gateway/hooks/action.ts";
import { hooksSchema } from "../../../../src/gateway/hooks/config.ts";
import { makeDeliveries } from "../../../../src/gateway/hooks/queue/deliveries/deliveries.ts";
import { outboxMigrations } from "../../../../src/gateway/channels/outbox/tables.ts";
import { deliveryMigrations } from "../../../../src/gateway/hooks/queue/deliveries/tables.ts";
import { runOrigin } from "../../../../src/gateway/hooks/queue/deliveries/queries.ts";
import { makeChecks } from "../../../../src/gateway/hooks/ingress/checks.ts";
import { makeIngress, type Ingress } from "../../../../src/gateway/hooks/ingress/ingress.ts";
import { makeMappingsOf } from "../../../../src/gateway/hooks/mapping/live.ts";
import { RunWatchers } from "../../../../src/gateway/hooks/queue/worker/watch.ts";
import type { IngressDeps, IngressSettings } from "../../../../src/gateway/hooks/ingress/ports.ts";
import { answering, openStore } from "../../../stores.ts";
import { postsNothing } from "../queue/deliveries/fixtures.ts";

export const TOKEN = "test-token-of-24-characters";

export const CHANNELS = ["whatsapp", "telegram", "discord", "slack", "signal", "imessage", "msteams", "mattermost"];

export interface World {
  readonly ingress: Ingress;
  readonly store: Store;
  /** All accepted actions, oldest first. */
  actions(): Promise<HookAction[]>;
  settings: IngressSettings;
  nowMs: number;
  /** The results of transforms, in place of a module. */
  transform: () => unknown;
}

export interface WorldOptions {
  readonly hooks?: object;
  readonly trustedProxies?: string[];
  readonly maxQueued?: number;
  readonly maxPerMapping?: number;
  readonly log?: Logger;
  readonly deps?: Partial<IngressDeps>;
}

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export function makeWorld({ hooks, trustedProxies, maxQueued, maxPerMapping, log, deps }: WorldOptions = {}): World {
  const store = openStore([...deliveryMigrations, ...outboxMigrations]);
  const clock = { nowMs: Date.now() };
  const deliveries = makeDeliveries({
    store,
    settings: () => ({
      maxQueued: maxQueued ?? 10_000,
      maxQueuedOf: () => maxPerMapping ?? Infinity,
      keysMs: 3_600_000,
      retentionMs: 3_600_000,
    }),
    sessionKeyOf: (question) => hookSession({ ...question, session: sessionSchema.parse({}) }).key,
    posting: () => answering(postsNothing),
    now: () => clock.nowMs,
  });
  const watchers = new RunWatchers();
  const world: World = {
    store,
    settings: {
      hooks: hooksSchema.parse({ enabled: true, token: TOKEN, ...hooks }),
      gateway: { trustedProxies: trustedProxies ?? [] },
      folder: "/nowhere",
    },
    get nowMs() {
      return clock.nowMs;
    },
    set nowMs(ms) {
      clock.nowMs = ms;
    },
    transform: () => undefined,
    async actions() {
      const rows = await store.read(() => queryAll<{ action: string }>("SELECT action FROM runs ORDER BY seq"));
      return rows.map(({ action }) => JSON.parse(action) as HookAction); // insertRuns wrote it
    },
    ingress: makeIngress({
      settings: () => world.settings,
      accept: deliveries.accept,
      runs: {
        origin: (id) => store.read(() => runOrigin(id)),
        status: deliveries.run,
        watch: (id, signal) => watchers.watch(id, () => deliveries.run(id), signal),
      },
      mappings: makeMappingsOf(),
      transforms: { run: async () => world.transform() },
      checks: checksOf(() => world),
      log: log ?? silent,
      now: () => world.nowMs,
      ...deps,
    }),
  };
  return world;
}

const agents = agentsSchema.parse({
  defaults: { model: "hearth", models: { hearth: {}, small: { alias: "fast" } } },
  list: [{ id: "writer", model: "big" }, { id: "coder" }],
});

const checksOf = (world: () => World) =>
  makeChecks({
    settings: () => ({ hooks: world().settings.hooks, agents, session: sessionSchema.parse({}) }),
    modelNames: async () => ["hearth:latest", "small:latest", "big:latest"],
    channels: () => ({
      ids: CHANNELS,
      find: (name) => {
        const word = name.trim().toLowerCase();
        const id = { tg: "telegram", imsg: "imessage", teams: "msteams" }[word] ?? word;
        return CHANNELS.includes(id) ? { id, isConfigured: id === "telegram", takes: () => true } : undefined;
      },
    }),
  });
