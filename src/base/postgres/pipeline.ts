/**
 * Writes that suppose what they would have to ask (see `Supposition`), in batches: each is one statement that commits
 * by itself, and so one journey. While the database works on one batch the next fills, and is sent behind it. Where
 * something is not as was supposed, or the connection breaks, scripts of the `PostgresWriter` ask.
 */
import type { SQL } from "bun";
import type { AppError } from "../errors.ts";
import { queryOne, type Script, type Suppose, type Supposition } from "../store.ts";
import { Line } from "./line.ts";
import { isRefusal, SilentServer } from "./problems.ts";
import { planStatement } from "./server.ts";
import { query } from "./statements.ts";
import { isOtherwise, SupposedStatements, type WriteLock } from "./supposed-statement.ts";
import { BATCH_MAX, type GroupScript, type Pending } from "./writer.ts";

/** Where something was not as supposed, all is asked for so long: another journey would cost more. */
const ASK_MS = 10_000;
/** The same where the server could not be reached. */
const AWAY_MS = 1000;
/** Fewer wait for nobody. */
const FEW = 4;
/** How long a batch waits for those that are expected while the database does nothing of ours. */
const PATIENCE_MS = 1;

export interface SupposingWrite extends Pending {
  readonly suppose: Suppose<unknown, unknown>;
}

interface Batch {
  readonly line: Line;
  readonly members: readonly SupposingWrite[];
  readonly supposition: Supposition<unknown>;
}

export interface PipelineParts {
  readonly sql: SQL;
  readonly lock: WriteLock;
  /** How many processes write to the database. */
  readonly nodes: () => number;
  /** Of the writer: its script is to ask. */
  readonly ask: (write: Pending) => void;
  /** A commit is durable, or nobody says so. */
  readonly ended: (failure: AppError | undefined) => void;
}

export class Pipeline {
  readonly #parts: PipelineParts;
  readonly #statements: SupposedStatements;
  #waiting: SupposingWrite[] = [];
  /** Sent, in order. */
  readonly #underway: Batch[] = [];
  #line: Line | undefined;
  #connecting: Promise<void> | undefined;
  #asksUntil = 0;
  /** How many a batch waits for. */
  #wanted = 1;
  #patience: Timer | undefined;
  #isTurnOver = true;
  #idle: PromiseWithResolvers<void> | undefined;
  #unended = 0;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
    this.#statements = new SupposedStatements(parts.lock);
  }

  add(write: SupposingWrite): void {
    if (performance.now() < this.#asksUntil) return this.#parts.ask(write);
    this.#waiting.push(write);
    if (!this.#isTurnOver) return;
    this.#isTurnOver = false;
    queueMicrotask(() => {
      this.#isTurnOver = true; // what else came in with it is there
      this.#sendNext();
    });
  }

  /** Resolves once all that was added has ended, or is the writer's. */
  async close(): Promise<void> {
    while (this.#waiting.length > 0 || this.#unended > 0) {
      this.#idle = Promise.withResolvers();
      await this.#idle.promise;
    }
    await this.#connecting;
    this.#line?.close();
  }

  /** Batches that may be on their way: with one node, one beside that on which the database works. */
  get #depth(): number {
    return this.#parts.nodes() > 1 ? 1 : 2;
  }

  #sendNext(): void {
    const waiting = this.#waiting.length;
    if (waiting === 0 || this.#underway.length >= this.#depth) return;
    if (!this.#line) return this.#askAll();
    const last = this.#underway.at(-1);
    if (waiting >= BATCH_MAX || waiting >= Math.max(this.#wanted, last?.members.length ?? 1)) this.#send(this.#line);
    else if (!last) this.#patience ??= setTimeout(() => this.#waitNoMore(), PATIENCE_MS);
  }

  /** Those that were expected do not come. */
  #waitNoMore(): void {
    this.#patience = undefined;
    this.#wanted = 1;
    this.#sendNext();
  }

  /** Until there is a connection. */
  #askAll(): void {
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    for (const write of this.#waiting.splice(0)) this.#parts.ask(write);
    this.#idle?.resolve();
  }

  async #connect(): Promise<void> {
    let line: Line | undefined;
    try {
      line = await Line.open(this.#parts.sql);
      await line.command(planStatement(true));
      this.#line = line;
    } catch {
      line?.close();
      this.#asksUntil = performance.now() + AWAY_MS; // the writer says why
    }
  }

  #send(line: Line): void {
    clearTimeout(this.#patience);
    this.#patience = undefined;
    const { suppose } = this.#waiting[0]!;
    const other = this.#waiting.findIndex((write) => write.suppose !== suppose);
    const members = this.#waiting.splice(0, Math.min(BATCH_MAX, other < 0 ? BATCH_MAX : other));
    this.#unended++;
    void this.#write(line, members).finally(() => {
      this.#unended--;
      this.#idle?.resolve();
    });
    this.#sendNext();
  }

  /** Sends before it returns. */
  async #write(line: Line, members: readonly SupposingWrite[]): Promise<void> {
    let sent: { batch: Batch; answer: Promise<unknown> } | undefined;
    try {
      const supposition = members[0]!.suppose(members.map(({ input }) => input));
      if (supposition) sent = this.#sendBatch({ line, members, supposition });
    } catch {
      // scripts that run alone find out whose it is
    }
    if (sent) await this.#end(sent.batch, sent.answer);
    else for (const member of members) this.#parts.ask(member);
  }

  #sendBatch(batch: Batch): { batch: Batch; answer: Promise<unknown> } {
    const { text, values } = this.#statements.statementOf(batch.supposition);
    const answer = query(batch.line, text, values);
    this.#underway.push(batch);
    return { batch, answer };
  }

  async #end(batch: Batch, answer: Promise<unknown>): Promise<void> {
    const end = await answer.then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    const asking = this.#waiting.length + this.#underway.reduce((sum, { members }) => sum + members.length, 0);
    this.#wanted = asking < FEW ? 1 : Math.ceil(asking / this.#depth);
    this.#underway.splice(this.#underway.indexOf(batch), 1);
    if (end) return this.#failed(batch, end.error);
    this.#sendNext(); // the database waits for it, those who are answered do not
    this.#parts.ended(undefined);
    this.#resolve(batch);
    this.#closeUnused(batch.line);
  }

  #failed(batch: Batch, error: unknown): void {
    const { line, members } = batch;
    const isSilent = error instanceof SilentServer;
    const isBroken = !isRefusal(error);
    if (isOtherwise(error)) this.#asksUntil = performance.now() + ASK_MS;
    // a session that is not what it should be stays so
    if (isSilent || isBroken || isOtherwise(error)) this.#line = this.#line === line ? undefined : this.#line;
    if (isSilent || isBroken) line.close();
    this.#closeUnused(line);
    if (isSilent) this.#giveUp(batch, error);
    else for (const [at, member] of members.entries()) this.#parts.ask(isBroken ? unlessStored(batch, at) : member);
    this.#sendNext();
  }

  /** Those who wait have waited as long. */
  #giveUp({ members }: Batch, problem: SilentServer): void {
    this.#parts.ended(problem);
    for (const { reject } of [...members, ...this.#waiting.splice(0)]) reject(problem);
  }

  #closeUnused(line: Line): void {
    if (line !== this.#line && !this.#underway.some((batch) => batch.line === line)) line.close();
  }

  #resolve({ members, supposition }: Batch): void {
    for (let i = 0; i < members.length; i++) members[i]!.resolve(supposition.results[i]);
  }
}

/**
 * A server may store, or may have stored, what came over a connection that broke. Behind the lock of those that write
 * it is seen whether it did; if not, it cannot any more, by the same keys.
 */
function unlessStored({ members, supposition: { proofOf, results } }: Batch, at: number): Pending {
  const member = members[at]!;
  const script: GroupScript = function* (inputs): Script<readonly unknown[]> {
    const { text, values } = proofOf(at);
    // only a transaction that writes waits for its copy, and so for that of what it finds
    const isStored = (yield* queryOne(`${text} FOR UPDATE`, ...values)) !== undefined;
    return isStored ? [results[at]] : yield* member.script(inputs);
  };
  return { ...member, script };
}
