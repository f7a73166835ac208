/**
 * The gateway: wires database, ingress, deliveries and their worker, agent, heartbeat and channels together, and starts
 * and stops them in order.
 */
import type { ToolServers } from "../agent/calls/server-tools.ts";
import type { HeartbeatDelivery } from "../agent/heartbeat-outcome.ts";
import { Heartbeat } from "../agent/heartbeat.ts";
import type { ModelSource } from "../agent/models.ts";
import { hookSession, mainSessionKey } from "../agent/session-key.ts";
import { findSession } from "../agent/sessions.ts";
import { type Clock, type Logger, messageOf } from "../../base/index.ts";
import type { NodeStatus } from "../database/peers.ts";
import type { Transaction, Store } from "../database/store.ts";
import type { Tracer } from "../../base/tracing.ts";
import type { Target } from "../channels/channel.ts";
import { forgetFailed, textOutcome } from "../channels/outbox/messages.ts";
import { Outbox, type OutboxDeps } from "../channels/outbox/outbox.ts";
import { findChannelId, resolveTarget } from "../channels/resolve.ts";
import { makeApprovals } from "../hooks/approvals.ts";
import { makeAdmin, type Admin, type AdminDeps } from "../hooks/admin/admin.ts";
import { makeDeliveries, type Deliveries, type DeliverySettings } from "../hooks/queue/deliveries/deliveries.ts";
import { runOrigin } from "../hooks/queue/deliveries/queries.ts";
import { withFallback } from "../hooks/queue/worker/conclude.ts";
import { makeChecks } from "../hooks/ingress/checks.ts";
import { makeIngress, type Ingress } from "../hooks/ingress/ingress.ts";
import type { IngressDeps } from "../hooks/ingress/ports.ts";
import { makeMappingsOf, type MappingsOf } from "../hooks/mapping/live.ts";
import { TransformPool } from "../hooks/mapping/transforms/pool.ts";
import { makeAgentPorts } from "../hooks/queue/worker/agent-ports.ts";
import type { WorkerPorts } from "../hooks/queue/worker/ports.ts";
import { Worker, type WorkerSettings } from "../hooks/queue/worker/worker.ts";
import type { ChatRuntime } from "../../runtime/portable.ts";
import { checkWritable, statusOf, type GatewayStatus } from "./status.ts";
import { type GatewayObserver, Observers } from "./observers.ts";
import { keepHouse } from "./housekeeping.ts";
import { LiveChannels } from "./live-channels.ts";
import { LiveMail } from "./live-mail.ts";
import { makeLiveFindings } from "./live-findings.ts";
import type { Finding } from "./report.ts";
import { makeOnSettle } from "./main-messages.ts";
import type { GatewaySnapshot } from "./snapshot.ts";
import { newerTables } from "./newer.ts";
import { differences } from "./nodes.ts";
import { makeTracedAgent } from "./traced.ts";
import { openStorage, type Storage } from "./storage.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Time limit at shutdown for messages under way. */
const LAST_SENDS_MS = 2000;

/** Estimated time of a restart. */
const RESTART_MS = 5000;

/** A source of changing snapshots; `ConfigWatch` is one. */
export interface SnapshotSource {
  snapshot(): GatewaySnapshot;
  /** The error in the current files; undefined: they are in force. */
  readonly problem?: string | undefined;
  onChange(listener: (snapshot: GatewaySnapshot) => void): void;
}

export interface GatewayParts extends ModelSource {
  readonly source: SnapshotSource;
  /** Folder of the database. */
  readonly home: string;
  readonly runtime: ChatRuntime;
  readonly clock: Clock;
  readonly log: Logger;
  readonly fetch: typeof fetch;
  /** Absent: there are no tool servers. */
  readonly servers?: ToolServers | undefined;
  /** Absent: tracing is off. */
  readonly tracer?: Tracer | undefined;
  /** Audits the configuration; absent: there is nothing to audit. */
  readonly findings?: () => Promise<readonly Finding[] | undefined>;
}

export interface Gateway {
  readonly ingress: Ingress;
  readonly admin: Admin;
  readonly deliveries: Deliveries;
  readonly worker: Worker;
  readonly heartbeat: Heartbeat;
  readonly outbox: Outbox;
  readonly channels: LiveChannels;
  readonly mail: LiveMail;
  readonly mappings: MappingsOf;
  readonly transforms: TransformPool;
  readonly store: Store;
  readonly snapshot: () => GatewaySnapshot;
  /** Calls `listener` with every new snapshot. */
  onChange(listener: (snapshot: GatewaySnapshot) => void): void;
  /** Calls `observer` at every later end of a run or reply. */
  observe(observer: Partial<GatewayObserver>): void;
  /** Counts of waiting and running work. */
  status(): Promise<GatewayStatus>;
  /** The servers that share the database, the oldest first; empty if this one has it to itself. */
  nodes(): Promise<readonly NodeStatus[]>;
  /** Rejects with `storage` if the database cannot be written. */
  check(): Promise<void>;
  /** True once it is stopping. */
  isDraining(): boolean;
  /** While it stops: milliseconds until the next process may be up. */
  backInMs(): number;
  /** Recovers interrupted work, and runs until `stop`. */
  start(): Promise<void>;
  /** Accepts nothing more, lets running work finish for a while, and leaves the rest for the next start. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Throws `conflict` if another process has the database, `storage` if it cannot be opened. Nothing runs before `start`.
 */
export async function makeGateway(parts: GatewayParts): Promise<Gateway> {
  const { source, runtime, log, tracer, modelNames, isOffered, canChat } = parts;
  const models: ModelSource = { modelNames, isOffered, canChat };
  const snapshot = (): GatewaySnapshot => source.snapshot();
  const storage = await openStorage({ ...parts, snapshot });
  const { store, peers, clock, close } = storage;
  const now = (): number => clock.now();
  const channels = new LiveChannels({ fetch: parts.fetch, now, log });
  await channels.load(snapshot());
  const transforms = new TransformPool();
  const mappings = makeMappingsOf();
  const onSettle = makeOnSettle({ snapshot, now, log });
  const observers = new Observers();
  const onTried: OutboxDeps["onTried"] = (...tried) => observers.messageTried(...tried);
  const goElsewhere: OutboxDeps["goElsewhere"] = (runIds) => store.read(() => withFallback(runIds));
  const outbox = new Outbox({ store, peers, ...channels.sending, now, log, onSettle, onTried, goElsewhere });
  const { replies, delivery } = makeReplyPorts({ outbox, peers, channels, snapshot });
  const { servers } = parts;
  const agent = makeTracedAgent({ runtime, store, clock, settings: snapshot, servers, ...models }, tracer);
  const heartbeat = new Heartbeat({ agent, store, peers, clock, settings: snapshot, delivery, log });
  const worker = new Worker({
    store,
    peers,
    ports: { ...makeAgentPorts({ agent, heartbeat, settings: snapshot }), ...replies },
    settings: () => workerSettings(snapshot(), mappings),
    log,
    now,
    random: Math.random,
    observer: observers,
  });
  const deliveries = makeDeliveries({
    store,
    settings: () => deliverySettings(snapshot(), mappings),
    sessionKeyOf: (question) => hookSession({ ...question, session: snapshot().session }).key,
    posting: () => worker.posting(),
    now,
    nodes: () => peers.count,
  });
  observers.add({ runEnded: (_, lane) => deliveries.ended(lane) });
  const checks = makeChecks({ settings: snapshot, ...models, channels: () => channels.names });
  const { accept, ...approvals } = makeApprovals({ store, deliveries, ports: replies, now, worker, peers });
  const runs = runsOf({ store, deliveries, worker });
  const asked = { settings: snapshot, accept, runs, mappings, transforms, checks };
  const ingress = makeIngress({ ...asked, spend: peers.spend, log, now });
  const resolveTarget: AdminDeps["resolveTarget"] = (asked) => store.read(() => replies.resolveTarget(asked));
  const trial = { settings: snapshot, mappings, transforms, checks, resolveTarget, now, log };
  const mail = new LiveMail({ ...trial, store, accept, random: Math.random }, peers.lease("mail"));
  const nodes = (): ReturnType<Gateway["nodes"]> => store.read(() => peers.nodes());
  const admin = makeAdmin({
    ...trial,
    token: () => snapshot().gateway.token,
    deliveries,
    worker,
    approvals,
    findings: async () => [...((await parts.findings?.()) ?? []), ...(await sharedFindings(storage))],
    nodes,
    mail: () => mail.status,
  });
  const liveFindings = makeLiveFindings({ source, models, observers, outbox, now });
  const watching = {
    observe: (observer: Partial<GatewayObserver>) => observers.add(observer),
    status: () => statusOf({ store, deliveries, heartbeat, mail: mail.status, worker, snapshot, liveFindings }),
    nodes,
    check: () => checkWritable(store, storage),
  };
  const running = { deliveries, worker, heartbeat, outbox, channels, mail, mappings, transforms };
  const onChange: Gateway["onChange"] = (listener) => source.onChange(listener);
  const made = { ...watching, ...running, ingress, admin, store, snapshot, onChange };
  return { ...made, ...makeLifecycle({ ...made, source, peers, clock, log, close }) };
}

type Built = Omit<Gateway, "start" | "stop" | "isDraining" | "backInMs"> &
  Pick<GatewayParts, "source" | "log"> &
  Pick<Storage, "peers" | "clock" | "close">;

/** Start and stop, in order: the outbox starts before the worker that fills it, and stops after it. */
function makeLifecycle(parts: Built): Pick<Gateway, "start" | "stop" | "isDraining" | "backInMs"> {
  const { source, peers, channels, outbox, worker, heartbeat, ingress, mail, clock, log } = parts;
  let endHousekeeping = (): Promise<void> => Promise.resolve();
  let backAtMs: number | undefined; // set while draining
  let stopped: Promise<void> | undefined;
  return {
    isDraining: () => backAtMs !== undefined,
    backInMs: () => Math.max(0, (backAtMs ?? 0) - clock.now()),
    async start() {
      await outbox.start();
      worker.start();
      await heartbeat.start();
      mail.start(() => source.snapshot());
      source.onChange((changed) => {
        mail.load(changed);
        heartbeat.reschedule();
        worker.poke(); // room for more turns
        channels.load(changed).then(
          () => outbox.channelsChanged(),
          (error: unknown) => log.error("reloading the channels failed", { error: messageOf(error) }),
        );
      });
      endHousekeeping = keepHouse(parts, peers.lease("housekeeping"));
    },
    stop(graceMs) {
      if (stopped) return stopped;
      backAtMs = clock.now() + graceMs + RESTART_MS;
      ingress.drain(graceMs + RESTART_MS);
      const houseIsLeft = endHousekeeping();
      return (stopped = Promise.all([stopParts(parts, graceMs), houseIsLeft]).then(parts.close));
    },
  };
}

async function stopParts({ mail, worker, heartbeat, outbox, transforms }: Built, graceMs: number): Promise<void> {
  await Promise.all([mail.stop(), worker.stop(graceMs), heartbeat.stop()]);
  await Promise.all([outbox.stop({ graceMs: Math.min(graceMs, LAST_SENDS_MS) }), transforms[Symbol.asyncDispose]()]);
}

/** Accepted runs, for status requests of their senders. */
const runsOf = ({
  store,
  deliveries,
  worker,
}: Pick<Gateway, "store" | "deliveries" | "worker">): IngressDeps["runs"] => ({
  origin: (id) => store.read(() => runOrigin(id)),
  status: deliveries.run,
  watch: (id, signal) => worker.watch(id, signal),
});

/** Findings about the nodes that share the database. */
const sharedFindings = async ({ store, peers, clock, newerMigrations }: Storage): Promise<Finding[]> => [
  ...differences(await store.read(() => peers.nodes()), clock.now()),
  ...newerTables(await newerMigrations()),
];

type ReplyPorts = Pick<
  WorkerPorts,
  | "resolveTarget"
  | "fallbackTargets"
  | "addReply"
  | "forgetFailed"
  | "cancelReply"
  | "replyOutcome"
  | "onReplySettled"
  | "sendReplies"
>;

/** The channels' side of the ports of worker and heartbeat. */
function makeReplyPorts(parts: Pick<Gateway, "outbox" | "channels" | "snapshot"> & Pick<Storage, "peers">): {
  readonly replies: ReplyPorts;
  readonly delivery: HeartbeatDelivery;
} {
  const { outbox, peers, channels, snapshot } = parts;
  const resolve: WorkerPorts["resolveTarget"] = function* (asked) {
    const last = (yield* findSession(mainSessionKey(snapshot().session)))?.route;
    return resolveTarget(channels.directory, { ...asked, last });
  };
  const fallbackTargets = function* (
    names: readonly string[] = snapshot().hooks.fallbackChannels,
  ): Transaction<readonly Target[]> {
    const targets: Target[] = [];
    for (const channel of names) {
      const found = yield* resolve({ channel });
      if (!("reason" in found)) targets.push(found);
    }
    return targets;
  };
  const replies: ReplyPorts = {
    resolveTarget: resolve,
    fallbackTargets,
    addReply: (reply) => outbox.add(reply),
    forgetFailed,
    cancelReply: (groupId) => outbox.cancel(groupId),
    replyOutcome: textOutcome,
    onReplySettled: (listener) => outbox.onSettled(listener),
    sendReplies() {
      outbox.poke();
      peers.tell("outbox");
    },
  };
  // a recipient of an earlier heartbeat must not outlive a change of the named channel's `defaultTo`
  const resolveNamed: HeartbeatDelivery["resolveTarget"] = ({ channel, to }) => {
    const id = findChannelId(channels.directory.kinds, channel);
    const recipient = to ?? (id && channels.channels.get(id)?.defaultTo);
    return resolve({ channel, ...(recipient === undefined ? {} : { to: recipient }) });
  };
  return { replies, delivery: { ...replies, resolveTarget: resolveNamed } };
}

function workerSettings(snapshot: GatewaySnapshot, mappings: MappingsOf): WorkerSettings {
  const { hooks, agents } = snapshot;
  return {
    maxConcurrent: agents.defaults.maxConcurrent,
    maxConcurrentOf: (id) => mappings(snapshot).all.find((mapping) => mapping.id === id)?.config.maxConcurrent,
    maxAttempts: hooks.queue.maxAttempts,
    callbacks: { secret: hooks.callbacks.secret, allowPrivate: hooks.callbacks.allowPrivateAddresses },
  };
}

function deliverySettings(snapshot: GatewaySnapshot, mappings: MappingsOf): DeliverySettings {
  const { queue, idempotencyHours } = snapshot.hooks;
  const { max, maxPerMapping = Math.ceil(max / 2), retentionDays } = queue;
  return {
    maxQueued: max,
    maxQueuedOf: (id) => mappings(snapshot).all.find((each) => each.id === id)?.config.maxQueued ?? maxPerMapping,
    keysMs: Math.ceil(idempotencyHours * HOUR_MS),
    retentionMs: retentionDays * DAY_MS,
  };
}
