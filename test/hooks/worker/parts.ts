/**
 * The worker's neighbours, small and real: an agent that answers by a script, events, transcripts and replies in tables
 * of the same database, so that what a transaction undoes is undone here too.
 */
import type { TurnRequest, TurnResult } from "../../../src/agent/turn.ts";
import type { Database, Migration } from "../../../src/base/database.ts";
import { AppError } from "../../../src/base/errors.ts";
import { plain } from "../../../src/base/passage.ts";
import type { HookAction } from "../../../src/hooks/action.ts";
import type { AcceptRequest } from "../../../src/hooks/deliveries/accept.ts";
import type { Deliveries } from "../../../src/hooks/deliveries/deliveries.ts";
import type { RunStatus } from "../../../src/hooks/deliveries/run-status.ts";
import type { ReplyOutcome, WorkerPorts } from "../../../src/hooks/worker/ports.ts";
import { isOver } from "../../../src/hooks/worker/watch.ts";
import { Worker, type WorkerSettings } from "../../../src/hooks/worker/worker.ts";
import { makeBench, request, type Bench } from "../deliveries/fixtures.ts";

export const partMigrations: readonly Migration[] = [
  {
    name: "test parts",
    sql: `
      CREATE TABLE test_events (seq INTEGER PRIMARY KEY, text TEXT, source TEXT, wrapped INTEGER, delivered INTEGER);
      CREATE TABLE test_turns (seq INTEGER PRIMARY KEY, run_id TEXT UNIQUE, session_key TEXT, entries TEXT, ephemeral INTEGER);
      CREATE TABLE test_replies (group_id TEXT PRIMARY KEY, target TEXT, text TEXT, outcome TEXT);
    `,
  },
];

export interface Parts {
  readonly ports: WorkerPorts;
  /** Turns that were begun. */
  readonly turns: TurnRequest[];
  readonly heartbeats: string[];
  /** What the model does; by default it answers at once. */
  answer: (request: TurnRequest) => Promise<TurnResult>;
  eventsMax: number;
  target: ReturnType<WorkerPorts["resolveTarget"]>;
  events(): string[];
  replies(): { group_id: string; text: string }[];
  settle(groupId: string, outcome: ReplyOutcome): void;
}

/** How a turn ended, as the agent says it. */
export const ended = (changes: Partial<TurnResult>): TurnResult => ({
  text: "",
  status: "ok",
  isTruncated: false,
  usage: { promptTokens: 3, completionTokens: 2, rounds: 1, toolCalls: 0 },
  record: { entries: [], seen: [] },
  ...changes,
});

export const ok = (text: string): TurnResult =>
  ended({
    text,
    model: "hearth",
    record: { entries: [{ kind: "message", message: { role: "assistant", content: text } }], seen: [] },
  });

export function makeParts(db: Database): Parts {
  for (const { sql } of partMigrations) db.run(sql.replaceAll("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"));
  const listeners = new Set<(groupId: string) => void>();
  const parts: Parts = {
    turns: [],
    heartbeats: [],
    answer: async (request) => ok(`answer to ${request.prompt.split("\n").at(-1)}`),
    eventsMax: Infinity,
    target: { channel: "telegram", to: "42" },
    events: () =>
      db
        .query<{ text: string }, []>("SELECT text FROM test_events ORDER BY seq")
        .all()
        .map((row) => row.text),
    replies: () => db.query<{ group_id: string; text: string }, []>("SELECT group_id, text FROM test_replies").all(),
    settle: (groupId, outcome) => {
      db.query("UPDATE test_replies SET outcome = ? WHERE group_id = ?").run(JSON.stringify(outcome), groupId);
      for (const listener of listeners) listener(groupId);
    },
    ports: {
      runTurn: (request) => {
        parts.turns.push(request);
        return parts.answer(request);
      },
      storeTurn: (at, turn) =>
        at
          .query("INSERT INTO test_turns (run_id, session_key, entries, ephemeral) VALUES (?, ?, ?, ?)")
          .run(turn.runId, turn.sessionKey, JSON.stringify(turn.record.entries), turn.isEphemeral),
      enqueueEvent: (at, event) => {
        const count = (): number => at.query<{ n: number }, []>("SELECT count(*) AS n FROM test_events").get()!.n;
        if (parts.eventsMax < Infinity && count() >= parts.eventsMax)
          throw new AppError("busy", "too many events wait");
        at.query("INSERT INTO test_events (text, source, wrapped, delivered) VALUES (?, ?, ?, ?)").run(
          plain(event.text),
          event.source,
          event.isWrapped,
          event.isDelivered ?? false,
        );
      },
      requestHeartbeat: (reason) => parts.heartbeats.push(reason),
      resolveTarget: () => parts.target,
      fallbackTargets: () => [],
      addReply: (at, reply) =>
        at
          .query("INSERT INTO test_replies (group_id, target, text) VALUES (?, ?, ?)")
          .run(reply.groupId, JSON.stringify(reply.target), reply.text),
      replyOutcome: (at, groupId) => {
        const query = at.query<{ outcome: string | null }, [string]>(
          "SELECT outcome FROM test_replies WHERE group_id = ?",
        );
        const outcome = query.get(groupId)?.outcome;
        return outcome ? (JSON.parse(outcome) as ReplyOutcome) : undefined;
      },
      onReplySettled: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      sendReplies: () => {},
    },
  };
  return parts;
}

export interface WorkerBench extends AsyncDisposable {
  readonly bench: Bench;
  readonly deliveries: Deliveries;
  readonly parts: Parts;
  readonly settings: { -readonly [Key in keyof WorkerSettings]: WorkerSettings[Key] };
  readonly logged: string[];
  worker: Worker;
  /** A worker as another process would have it: with an owner of its own. */
  anotherWorker(): Worker;
  /** Until nothing changes any more. */
  settled(runId: string): Promise<RunStatus>;
  /** Until a run is as it should be, by the worker's own news. */
  until(runId: string, holds: (status: RunStatus) => boolean): Promise<RunStatus>;
}

export function makeWorkerBench(): WorkerBench {
  const bench = makeBench();
  const parts = makeParts(bench.db);
  const logged: string[] = [];
  const log = (msg: string, fields?: object): number => logged.push(`${msg} ${JSON.stringify(fields ?? {})}`);
  const settings: WorkerBench["settings"] = {
    maxConcurrent: 4,
    maxConcurrentOf: () => undefined,
    maxAttempts: 3,
    callbacks: { secret: undefined, allowPrivate: true },
  };
  const makeWorker = (): Worker =>
    new Worker({
      db: bench.db,
      writer: bench.writer,
      ports: parts.ports,
      settings: () => settings,
      log: { debug: log, info: log, warn: log, error: log },
      now: () => bench.clock.now,
      random: () => 1,
    });
  const until: WorkerBench["until"] = async (runId, holds) => {
    for await (const news of self.worker.watch(runId)) {
      if (news.kind === "status" && holds(news.status)) return news.status;
    }
    const status = self.deliveries.run(runId);
    if (status && holds(status)) return status;
    throw new Error(`run ${runId} ended as ${JSON.stringify(status)}`);
  };
  const self: WorkerBench = {
    bench,
    deliveries: bench.deliveries,
    parts,
    settings,
    logged,
    worker: makeWorker(),
    anotherWorker: makeWorker,
    until,
    settled: (runId) => until(runId, isOver),
    async [Symbol.asyncDispose]() {
      await self.worker.stop(0);
      await bench[Symbol.asyncDispose]();
    },
  };
  bench.onQueued = (at) => self.worker.begin(at);
  self.worker.start();
  return self;
}

export async function send(at: WorkerBench, action: HookAction, changes: Partial<AcceptRequest> = {}): Promise<string> {
  const result = await at.deliveries.accept(request({ now: at.bench.clock.now, actions: [action], ...changes }));
  if (result.kind !== "accepted") throw new Error(`not accepted: ${result.kind}`);
  return result.runIds[0]!;
}

export interface Gate {
  /** Ends a turn that has begun. */
  open(runId: string, result?: TurnResult): void;
  begun(): string[];
  /** Until a run's turn has begun. */
  begins(runId: string): Promise<void>;
}

/** A model that answers when the test says so, or when it is told to stop. */
export function gate(at: WorkerBench): Gate {
  const waiting = new Map<string, (result: TurnResult) => void>();
  const begun = new Map<string, PromiseWithResolvers<void>>();
  const beginOf = (runId: string): PromiseWithResolvers<void> => {
    const known = begun.get(runId) ?? Promise.withResolvers<void>();
    begun.set(runId, known);
    return known;
  };
  at.parts.answer = ({ runId, signal }: TurnRequest) => {
    const { promise, resolve } = Promise.withResolvers<TurnResult>();
    waiting.set(runId, resolve);
    signal.addEventListener("abort", () => resolve(ended({ status: "cancelled" })));
    beginOf(runId).resolve();
    return promise;
  };
  return {
    open: (runId, result = ok("done")) => {
      begun.delete(runId);
      waiting.get(runId)!(result);
    },
    begun: () => at.parts.turns.map((turn) => turn.runId),
    begins: (runId) => beginOf(runId).promise,
  };
}
