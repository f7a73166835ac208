/**
 * An ingress with real deliveries behind it, in a database in memory. Models, channels and mappings are small ones of
 * our own: what a mapping makes of a request is written in its `textTemplate` or `messageTemplate`.
 */
import { agentsSchema, sessionSchema } from "../../../src/agent/config.ts";
import { hookSession } from "../../../src/agent/session-key.ts";
import { type Database, openDatabase, Writer } from "../../../src/base/database.ts";
import type { Logger } from "../../../src/base/log.ts";
import { operator, type Passage } from "../../../src/base/passage.ts";
import type { HookAction } from "../../../src/hooks/action.ts";
import { hooksSchema, type HooksConfig } from "../../../src/hooks/config.ts";
import { makeDeliveries } from "../../../src/hooks/deliveries/deliveries.ts";
import { deliveryMigrations } from "../../../src/hooks/deliveries/tables.ts";
import { makeChecks } from "../../../src/hooks/ingress/checks.ts";
import { makeIngress, type Ingress } from "../../../src/hooks/ingress/ingress.ts";
import type { IngressDeps, MappingOutcome, Mappings, NamedMapping } from "../../../src/hooks/ingress/ports.ts";

export const TOKEN = "test-token-of-24-characters";

export const CHANNELS = ["whatsapp", "telegram", "discord", "slack", "signal", "imessage", "msteams", "mattermost"];

export interface World {
  readonly ingress: Ingress;
  readonly db: Database;
  /** Everything that was accepted, oldest first. */
  actions(): HookAction[];
  settings: { hooks: HooksConfig; gateway: { trustedProxies: string[] } };
  nowMs: number;
  /** What the next mapped requests come to, instead of their template. */
  outcome: MappingOutcome | undefined;
}

export interface WorldOptions {
  readonly hooks?: object;
  readonly trustedProxies?: string[];
  readonly maxQueued?: number;
  readonly log?: Logger;
  readonly deps?: Partial<IngressDeps>;
}

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export function makeWorld({ hooks, trustedProxies, maxQueued, log, deps }: WorldOptions = {}): World {
  const db = openDatabase(":memory:", deliveryMigrations);
  const deliveries = makeDeliveries({
    db,
    writer: new Writer(db),
    settings: () => ({ maxQueued: maxQueued ?? 10_000, keysMs: 3_600_000, retentionMs: 3_600_000 }),
    sessionKeyOf: (question) => hookSession({ ...question, session: sessionSchema.parse({}) }).key,
    onQueued: () => {},
    now: () => world.nowMs,
  });
  const world: World = {
    db,
    settings: {
      hooks: hooksSchema.parse({ enabled: true, token: TOKEN, ...hooks }),
      gateway: { trustedProxies: trustedProxies ?? [] },
    },
    nowMs: Date.now(),
    outcome: undefined,
    actions: () =>
      db
        .query<{ action: string }, []>("SELECT action FROM runs ORDER BY seq")
        .all()
        .map(({ action }) => JSON.parse(action) as HookAction), // insertRuns wrote it
    ingress: makeIngress({
      settings: () => world.settings,
      accept: deliveries.accept,
      mappings: makeMappings(() => world.outcome),
      checks,
      log: log ?? silent,
      now: () => world.nowMs,
      ...deps,
    }),
  };
  return world;
}

const agents = agentsSchema.parse({ defaults: { model: "hearth", models: { hearth: {}, small: { alias: "fast" } } } });

const checks = makeChecks({
  settings: () => ({ agents, session: sessionSchema.parse({}) }),
  modelNames: async () => ["hearth:latest", "small:latest", "big:latest"],
  channels: () => ({
    ids: CHANNELS,
    find: (name) => {
      const id = { tg: "telegram", imsg: "imessage", teams: "msteams" }[name] ?? name;
      return CHANNELS.includes(id) ? { id, isConfigured: id === "telegram" } : undefined;
    },
  }),
});

function makeMappings(outcome: () => MappingOutcome | undefined): Mappings {
  return {
    candidates: (hooks, path) =>
      hooks.mappings
        .map((config, i): NamedMapping => ({ id: config.id ?? `mapping-${i + 1}`, config }))
        .filter(({ config }) => config.match.path === undefined || config.match.path === path),
    match: (candidates, { payload }) =>
      candidates.find(({ config }) => {
        const { source } = config.match;
        return source === undefined || (payload as { source?: unknown } | null)?.source === source;
      }),
    async run({ config: settings }, request) {
      const given = outcome();
      if (given) return given;
      const text = fill(settings.textTemplate ?? settings.messageTemplate ?? "", request);
      return { kind: "actions", actions: [actionOf(settings, text)], warnings: [] };
    },
  };
}

function actionOf(settings: NamedMapping["config"], text: Passage): HookAction {
  const { action, wakeMode, name = "Hook", deliver, channel, tools } = settings;
  return action === "wake"
    ? { kind: "wake", text, mode: wakeMode, isWrapped: true }
    : { kind: "agent", message: text, name, wakeMode, deliver, channel, tools, isWrapped: true };
}

/** `{{…}}` is a header, a query parameter, or all of the payload as JSON. */
function fill(template: string, { headers, query, payload }: Parameters<Mappings["run"]>[1]): Passage {
  return template.split(/\{\{(.+?)\}\}/).map((text, i) => {
    if (i % 2 === 0) return operator(text)[0]!;
    const [root, name = ""] = text.split(".");
    const value = root === "headers" ? headers[name] : root === "query" ? query[name] : JSON.stringify(payload);
    return { from: "external" as const, text: value ?? "" };
  });
}
