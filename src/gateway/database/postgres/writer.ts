/**
 * Writes of one connection, one transaction after the other, as in SQLite: what comes in while a commit is on its way
 * shares the next. Where the connection breaks before the answer to a commit, the server is asked what became of it.
 */
import type { SQL } from "bun";
import { AppError } from "../../../base/index.ts";
import type { Migration } from "../database.ts";
import type { Script } from "../store.ts";
import { Line } from "./line.ts";
import { isOfServer, isRepeatable, problemOf, RETRY_MS, SilentServer } from "./problems.ts";
import { checkDurable, planStatement } from "./server.ts";
import { runScript, send } from "./statements.ts";

/** Scripts that share a commit: a longer transaction would delay the answers of those at its beginning. */
const BATCH_MAX = 64;
const TRIES = 5;
/** No other try begins later. */
const TRIES_MS = 5000;
const TRY_AGAIN_MS = 20;

/** How long a server is waited for that is to say what became of a commit. */
const STATUS_MS = 3000;

/**
 * A server that crashed forgets commits whose answers it had not sent, and gives their numbers again. It empties tables
 * that it does not log, and so does one that takes another's place: what is in this one is of one life of the server.
 */
export const writerMigrations: readonly Migration[] = [
  {
    name: "store: lives",
    sql: `CREATE UNLOGGED TABLE server_lives (
      is_one BOOLEAN PRIMARY KEY DEFAULT true CHECK (is_one),
      life UUID NOT NULL DEFAULT gen_random_uuid()
    )`,
  },
];
const LIFE = "(SELECT life::text FROM server_lives) AS life";
/** Whoever comes to a server, and who finds that it crashed. */
export const NAME_LIFE = "INSERT INTO server_lives DEFAULT VALUES ON CONFLICT DO NOTHING";

/** What a server says of a transaction at its beginning. */
interface Begun {
  readonly id: string;
  /** Null: nobody has named it yet. */
  readonly life: string | null;
  readonly durable: string;
  /** Servers that a commit waits for; none: empty. */
  readonly standbys: string;
}

/** A number of its own is known before its commit is sent: what became of that can be asked. */
const BEGUN = `pg_current_xact_id()::text AS id, ${LIFE},
  current_setting('synchronous_commit') AS durable, current_setting('synchronous_standby_names') AS standbys`;

export type GroupScript = (inputs: readonly unknown[]) => Script<readonly unknown[]>;

/** What is to be written: a script for one input; of equal scripts there may be one for all of their inputs. */
export interface Pending {
  readonly script: GroupScript;
  readonly input: unknown;
  /** Whether its statements need no new plan each time. */
  readonly keepsPlans: boolean;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Ended = { readonly result: unknown } | { readonly error: unknown };

/** A script with all inputs that it is given. */
interface Piece {
  readonly script: GroupScript;
  readonly members: Pending[];
}

/** A transaction that a connection was asked to begin. */
interface Begin {
  readonly line: Line;
  readonly begun: Promise<Begun>;
}

interface Transaction extends Begin {
  readonly until: number;
  readonly arePlansKept: boolean;
  readonly ends: Map<Pending, Ended>;
  isOver: boolean;
}

/** Scripts failed together: each is run alone, and finds out for itself. */
class FailedTogether extends Error {}

export class PostgresWriter {
  readonly #sql: SQL;
  /** A transaction's first statement. */
  readonly #begun: string;
  #pending: Pending[] = [];
  #writing: Promise<void> | undefined;
  #line: Line | undefined;
  /** Whether its session keeps plans; undefined: it was told in a transaction that has not ended well. */
  #arePlansKept: boolean | undefined;
  /** Whose commit is on its way. */
  #committing: Line | undefined;
  /** Behind that commit. */
  #next: Begin | undefined;
  #failure: AppError | undefined;

  /** @param lock an expression that each transaction begins with: what it asks and stores is what came in until then */
  constructor(sql: SQL, lock: string) {
    this.#sql = sql;
    this.#begun = `SELECT ${lock}, ${BEGUN}`;
  }

  add(pending: Pending): void {
    this.#pending.push(pending);
    this.#writing ??= this.#writeAll();
    if (this.#committing) this.#beginNext(this.#committing);
  }

  /** The server begins it after the commit, without hearing from us again. */
  #beginNext(line: Line): void {
    this.#next ??= this.#begin(line);
  }

  /** Sends before it returns. */
  #begin(line: Line): Begin {
    send(line, "BEGIN");
    const begun = line.command(this.#begun).then(([row]) => row as unknown as Begun);
    begun.catch(() => {}); // whoever waits for it is told
    return { line, begun };
  }

  /** Why the last commit failed; undefined where it did not. */
  get failure(): AppError | undefined {
    return this.#failure;
  }

  /** Resolves once all that was to be written is. */
  async close(): Promise<void> {
    await this.#writing;
    this.#line?.release();
  }

  async #writeAll(): Promise<void> {
    await Promise.resolve(); // for what else came in with it
    while (this.#pending.length > 0) {
      const until = performance.now() + TRIES_MS;
      await this.#enter();
      await this.#write(this.#pending.splice(0, BATCH_MAX), until);
    }
    this.#writing = undefined;
  }

  /** Waits for the lock. */
  async #enter(): Promise<void> {
    if (!this.#line) return;
    this.#beginNext(this.#line);
    await this.#next?.begun.catch(() => {}); // the transaction says so too
  }

  async #write(batch: readonly Pending[], until: number): Promise<void> {
    try {
      const ends = await this.#commit(batch, until);
      this.#failure = undefined;
      for (const pending of batch) {
        const end = ends.get(pending)!;
        if ("error" in end) pending.reject(end.error);
        else pending.resolve(end.result);
      }
    } catch (error) {
      this.#failure = problemOf(error);
      // what came in meanwhile has waited as long
      const waiting = isOfServer(error) || error instanceof SilentServer ? this.#pending.splice(0) : [];
      for (const { reject } of [...batch, ...waiting]) reject(this.#failure);
    }
  }

  /** Tries again where the server says that this may help; a connection that broke gives way to a new one. */
  async #commit(batch: readonly Pending[], until: number): Promise<ReadonlyMap<Pending, Ended>> {
    let pieces = piecesOf(batch);
    let isTogether = pieces.length === 1;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#transact(await this.#lineOf(), { pieces, isTogether, until });
      } catch (error) {
        await this.#renew();
        const isWorthIt = isRepeatable(error) || isOfServer(error) || error instanceof FailedTogether;
        if (!isWorthIt || tries === TRIES || performance.now() > until) throw error;
        if (error instanceof FailedTogether) {
          pieces = batch.map((pending) => ({ script: pending.script, members: [pending] }));
          isTogether = false;
        } else await Bun.sleep(TRY_AGAIN_MS * 2 ** tries * (0.5 + Math.random()));
      }
    }
  }

  async #lineOf(): Promise<Line> {
    if (this.#line) return this.#line;
    this.#arePlansKept = undefined; // a new session is told
    return (this.#line = await Line.open(this.#sql));
  }

  /**
   * All scripts in one transaction. One that throws undoes itself alone.
   * @param isTogether there is one script only, whose last statements go with the commit. Throws `FailedTogether` where
   *   these fail, or a script with several inputs
   */
  async #transact(
    line: Line,
    { pieces, isTogether, until }: { pieces: readonly Piece[]; isTogether: boolean; until: number },
  ): Promise<ReadonlyMap<Pending, Ended>> {
    const { begun } = this.#next ?? this.#begin(line);
    this.#next = undefined;
    const arePlansKept = pieces.every(({ members }) => members.every(({ keepsPlans }) => keepsPlans));
    const transaction: Transaction = { line, begun, until, arePlansKept, ends: new Map(), isOver: false };
    const marks: Promise<unknown>[] = [begun];
    if (this.#arePlansKept !== arePlansKept) {
      this.#arePlansKept = undefined;
      marks.push(send(line, planStatement(arePlansKept)));
    }
    const commit = (sendLast: () => Promise<unknown>): Promise<void> => this.#finish(transaction, sendLast);
    for (const { script, members } of pieces) {
      if (!isTogether) marks.push(send(line, "SAVEPOINT piece"));
      try {
        const results = await runScript(
          line,
          script(members.map(({ input }) => input)),
          isTogether ? commit : undefined,
        );
        for (const [i, member] of members.entries()) transaction.ends.set(member, { result: results[i] });
        if (!isTogether) marks.push(send(line, "RELEASE SAVEPOINT piece"));
      } catch (error) {
        await Promise.all(marks); // which may say what came first
        const isWhole = transaction.isOver || line.isSpent || error instanceof FailedTogether; // not its alone
        if (isWhole || isOfServer(error) || isRepeatable(error)) throw error;
        if (members.length > 1) throw new FailedTogether();
        transaction.ends.set(members[0]!, { error });
        await line.command(isTogether ? "ROLLBACK" : "ROLLBACK TO SAVEPOINT piece");
        transaction.isOver = isTogether;
      }
    }
    await Promise.all(marks);
    if (!transaction.isOver) await this.#finish(transaction);
    return transaction.ends;
  }

  /** Commits. Throws where that was not done, or nobody says whether it was. @param sendLast what goes with it */
  async #finish(transaction: Transaction, sendLast?: () => Promise<unknown>): Promise<void> {
    const { line, until } = transaction;
    const begun = await transaction.begun;
    if (begun.durable === "off") line.spend();
    checkDurable(begun.durable);
    if (begun.life === null) send(line, NAME_LIFE);
    const asked = sendLast?.();
    asked?.catch(() => {}); // the commit says so too
    // a commit that waits for its copy cannot be undone any more: out of time it would be answered without one
    if (begun.standbys !== "") send(line, "SET LOCAL statement_timeout = 0");
    transaction.isOver = true;
    let command: string;
    try {
      command = await this.#sendCommit(line);
    } catch (error) {
      // given up while it waits for its copy, it is seen, and may have none
      if (error instanceof SilentServer && begun.standbys !== "") throw error;
      if (await this.#isCommitted(begun, until)) return;
      throw error;
    }
    if (command === "COMMIT") {
      this.#arePlansKept = transaction.arePlansKept;
      return void (await asked); // which may not have been sent
    }
    await asked?.catch((error: unknown) => {
      throw isOfServer(error) || isRepeatable(error) ? error : new FailedTogether();
    });
    throw new AppError("storage", "the database undid what was to be committed");
  }

  /** Returns what became of it. What is to be written next begins behind it. */
  async #sendCommit(line: Line): Promise<string> {
    this.#committing = line;
    try {
      const committed = line.command("COMMIT");
      if (this.#pending.length > 0) this.#beginNext(line);
      return (await committed).command;
    } finally {
      this.#committing = undefined;
    }
  }

  /**
   * What became of a commit whose answer did not come. Throws `storage` where nobody says until then, or nobody can: a
   * server that crashed since gives the number of a transaction that it forgot to another one.
   */
  async #isCommitted({ id, life }: Begun, until: number): Promise<boolean> {
    for (;;) {
      const found = await this.#statusOf(id).catch(() => undefined); // it is asked again
      const isSame = found?.life === life && life !== null;
      if (found?.status === "aborted" || (found?.status === "committed" && isSame)) return found.status === "committed";
      if (performance.now() > until || (found && !isSame)) {
        const reason = "the database does not say whether a commit was made";
        throw new AppError("storage", reason, { retryAfterMs: RETRY_MS });
      }
      await Bun.sleep(TRY_AGAIN_MS);
    }
  }

  async #statusOf(id: string): Promise<{ status: string | null; life: string | null }> {
    const line = await Line.open(this.#sql, STATUS_MS);
    try {
      const [row] = await line.query(`SELECT pg_xact_status($1::text::xid8) AS status, ${LIFE}`, [id]);
      return row as { status: string | null; life: string | null };
    } finally {
      line.release();
    }
  }

  /** Ends the transaction that failed; where that fails too, the next one gets another connection. */
  async #renew(): Promise<void> {
    const line = this.#line;
    this.#next = undefined;
    try {
      await line?.command("ROLLBACK");
      if (!line?.isSpent) return;
    } catch {
      // it is closed
    }
    this.#line = undefined;
    line?.close();
  }
}

/** Of equal scripts one with all of their inputs, in the place of the first. */
function piecesOf(batch: readonly Pending[]): readonly Piece[] {
  const pieces = new Map<GroupScript, Piece>();
  for (const pending of batch) {
    const piece = pieces.get(pending.script) ?? { script: pending.script, members: [] };
    piece.members.push(pending);
    pieces.set(pending.script, piece);
  }
  return [...pieces.values()];
}
