/**
 * Writes of one connection, one commit after the other, as in SQLite: transactions that arrive during a commit share
 * the next. If the connection breaks before the answer to a commit, the server is asked whether it was committed.
 */
import type { SQL } from "bun";
import { AppError } from "../../../base/index.ts";
import type { Migration } from "../database.ts";
import type { Transaction } from "../store.ts";
import { Connection } from "./connection.ts";
import { isOfServer, isRepeatable, problemOf, RETRY_MS, SilentServer } from "./problems.ts";
import { checkDurable, planStatement } from "./server.ts";
import { runTransaction, send } from "./statements.ts";

/** Maximum transactions in a commit: more would delay the answers of the first ones. */
const BATCH_MAX = 64;
const TRIES = 5;
/** No retry starts later than this. */
const TRIES_MS = 5000;
const TRY_AGAIN_MS = 20;

/** Time limit for asking whether a commit succeeded. */
const STATUS_MS = 3000;

/**
 * A crashed server forgets commits that it had not answered, and reuses their transaction ids. It also empties unlogged
 * tables, as does a promoted standby: a row in this one identifies one life of the server.
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
/** Run on every new connection, and again after a crash is noticed. */
export const NAME_LIFE = "INSERT INTO server_lives DEFAULT VALUES ON CONFLICT DO NOTHING";

/** A server's answer to the start of a group. */
interface Begun {
  readonly id: string;
  /** Null: the life has no name yet. */
  readonly life: string | null;
  readonly durable: string;
  /** Names of the synchronous standbys that a commit waits for; empty: none. */
  readonly standbys: string;
}

/** The transaction id is known before its commit is sent, so its status can be queried. */
const BEGUN = `pg_current_xact_id()::text AS id, ${LIFE},
  current_setting('synchronous_commit') AS durable, current_setting('synchronous_standby_names') AS standbys`;

export type GroupTransaction = (inputs: readonly unknown[]) => Transaction<readonly unknown[]>;

/** A pending write: a transaction for one input; equal ones may be run once with all of their inputs. */
export interface Pending {
  readonly transaction: GroupTransaction;
  readonly input: unknown;
  /** True if cached plans suit its statements. */
  readonly keepsPlans: boolean;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Ended = { readonly result: unknown } | { readonly error: unknown };

/** A transaction with all of its inputs. */
interface Piece {
  readonly transaction: GroupTransaction;
  readonly members: Pending[];
}

/** A requested start of a group. */
interface Begin {
  readonly connection: Connection;
  readonly begun: Promise<Begun>;
}

/** The transactions that share a commit: for the server one transaction. */
interface Group {
  readonly connection: Connection;
  readonly ends: Map<Pending, Ended>;
  /** Answers to commands, awaited before the commit. */
  readonly sent: Promise<unknown>[];
}

export class PostgresWriter {
  readonly #sql: SQL;
  /** The first statement of a group. */
  readonly #begun: string;
  #pending: Pending[] = [];
  #writing: Promise<void> | undefined;
  #connection: Connection | undefined;
  /** The session's plan setting; undefined: unknown, the transaction that set it failed. */
  #arePlansKept: boolean | undefined;
  /** The connection whose commit is under way. */
  #committing: Connection | undefined;
  /** The group that starts after that commit. */
  #next: Begin | undefined;
  #failure: AppError | undefined;

  /** @param lock an expression that each group begins with: earlier commits of others are visible after it */
  constructor(sql: SQL, lock: string) {
    this.#sql = sql;
    this.#begun = `SELECT ${lock}, ${BEGUN}`;
  }

  add(pending: Pending): void {
    this.#pending.push(pending);
    this.#writing ??= this.#writeAll();
    if (this.#committing) this.#beginNext(this.#committing);
  }

  /** Pipelined: the server starts it right after the commit. */
  #beginNext(connection: Connection): void {
    this.#next ??= this.#begin(connection);
  }

  /** Sends before it returns. */
  #begin(connection: Connection): Begin {
    send(connection, "BEGIN");
    const begun = connection.command(this.#begun).then(([row]) => row as unknown as Begun);
    begun.catch(() => {}); // the awaiting caller gets the error
    return { connection, begun };
  }

  /** The error of the last commit; undefined if it succeeded. */
  get failure(): AppError | undefined {
    return this.#failure;
  }

  /** Resolves once all pending work is stored. */
  async close(): Promise<void> {
    await this.#writing;
    this.#connection?.release();
  }

  async #writeAll(): Promise<void> {
    await Promise.resolve(); // lets more work join
    while (this.#pending.length > 0) {
      const until = performance.now() + TRIES_MS;
      await this.#enter();
      await this.#write(this.#pending.splice(0, BATCH_MAX), until);
    }
    this.#writing = undefined;
  }

  /** Waits for the lock. */
  async #enter(): Promise<void> {
    if (!this.#connection) return;
    this.#beginNext(this.#connection);
    await this.#next?.begun.catch(() => {}); // the group reports the same error
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
      // work that arrived meanwhile has waited for the same error
      const waiting = isOfServer(error) || error instanceof SilentServer ? this.#pending.splice(0) : [];
      for (const { reject } of [...batch, ...waiting]) reject(this.#failure);
    }
  }

  /** Retries if the server says that this may help; replaces a broken connection. */
  async #commit(batch: readonly Pending[], until: number): Promise<ReadonlyMap<Pending, Ended>> {
    const pieces = piecesOf(batch);
    for (let tries = 1; ; tries++) {
      try {
        return await this.#commitAll(await this.#openedConnection(), pieces, until);
      } catch (error) {
        await this.#renew();
        const isWorthIt = isRepeatable(error) || isOfServer(error);
        if (!isWorthIt || tries === TRIES || performance.now() > until) throw error;
        await Bun.sleep(TRY_AGAIN_MS * 2 ** tries * (0.5 + Math.random()));
      }
    }
  }

  async #openedConnection(): Promise<Connection> {
    if (this.#connection) return this.#connection;
    this.#arePlansKept = undefined; // a new session has no setting yet
    return (this.#connection = await Connection.open(this.#sql));
  }

  /** Runs all transactions and commits them at once. */
  async #commitAll(
    connection: Connection,
    pieces: readonly Piece[],
    until: number,
  ): Promise<ReadonlyMap<Pending, Ended>> {
    const { begun } = this.#next ?? this.#begin(connection);
    this.#next = undefined;
    const arePlansKept = pieces.every(({ members }) => members.every(({ keepsPlans }) => keepsPlans));
    const group: Group = { connection, ends: new Map(), sent: [begun] };
    if (this.#arePlansKept !== arePlansKept) {
      this.#arePlansKept = undefined;
      group.sent.push(send(connection, planStatement(arePlansKept)));
    }
    for (const piece of pieces) await this.#runPiece(group, piece);
    await Promise.all(group.sent);
    await this.#finish(connection, await begun, until);
    this.#arePlansKept = arePlansKept;
    return group.ends;
  }

  /** Rolls back a piece that throws, and runs it again for each of its inputs, so that each gets its own error. */
  async #runPiece(group: Group, { transaction, members }: Piece): Promise<void> {
    const { connection, ends, sent } = group;
    sent.push(send(connection, "SAVEPOINT piece"));
    try {
      const results = await runTransaction(connection, transaction(members.map(({ input }) => input)));
      for (const [i, member] of members.entries()) ends.set(member, { result: results[i] });
      sent.push(send(connection, "RELEASE SAVEPOINT piece"));
    } catch (error) {
      await Promise.all(sent); // an earlier failure is the cause
      // not this transaction's fault alone
      if (connection.isSpent || isOfServer(error) || isRepeatable(error)) throw error;
      await connection.command("ROLLBACK TO SAVEPOINT piece");
      if (members.length === 1) ends.set(members[0]!, { error });
      else for (const member of members) await this.#runPiece(group, { transaction, members: [member] });
    }
  }

  /** Commits. Throws if the commit failed, or its outcome is unknown. */
  async #finish(connection: Connection, begun: Begun, until: number): Promise<void> {
    if (begun.durable === "off") connection.spend();
    checkDurable(begun.durable);
    if (begun.life === null) send(connection, NAME_LIFE);
    // a commit that waits for its standby cannot be rolled back: at the time limit it would be answered without a copy
    if (begun.standbys !== "") send(connection, "SET LOCAL statement_timeout = 0");
    let command: string;
    try {
      command = await this.#sendCommit(connection);
    } catch (error) {
      // abandoned while it waits for its standby, the commit is visible, and may have no copy
      if (error instanceof SilentServer && begun.standbys !== "") throw error;
      if (await this.#isCommitted(begun, until)) return;
      throw error;
    }
    if (command !== "COMMIT") throw new AppError("storage", "the database rolled the commit back");
  }

  /** Returns the server's answer. The next group is pipelined after it. */
  async #sendCommit(connection: Connection): Promise<string> {
    this.#committing = connection;
    try {
      const committed = connection.command("COMMIT");
      if (this.#pending.length > 0) this.#beginNext(connection);
      return (await committed).command;
    } finally {
      this.#committing = undefined;
    }
  }

  /**
   * True if a commit without answer succeeded. Throws `storage` if the server does not answer in time, or cannot know:
   * after a crash it reuses the ids of forgotten transactions.
   */
  async #isCommitted({ id, life }: Begun, until: number): Promise<boolean> {
    for (;;) {
      const found = await this.#statusOf(id).catch(() => undefined); // the loop retries
      const isSame = found?.life === life && life !== null;
      if (found?.status === "aborted" || (found?.status === "committed" && isSame)) return found.status === "committed";
      if (performance.now() > until || (found && !isSame)) {
        const reason = "the outcome of a commit is unknown";
        throw new AppError("storage", reason, { retryAfterMs: RETRY_MS });
      }
      await Bun.sleep(TRY_AGAIN_MS);
    }
  }

  async #statusOf(id: string): Promise<{ status: string | null; life: string | null }> {
    const connection = await Connection.open(this.#sql, STATUS_MS);
    try {
      const [row] = await connection.query(`SELECT pg_xact_status($1::text::xid8) AS status, ${LIFE}`, [id]);
      return row as { status: string | null; life: string | null };
    } finally {
      connection.release();
    }
  }

  /** Ends the failed group; if that fails, too, the next group gets a new connection. */
  async #renew(): Promise<void> {
    const connection = this.#connection;
    this.#next = undefined;
    try {
      await connection?.command("ROLLBACK");
      if (!connection?.isSpent) return;
    } catch {
      // it is already closed
    }
    this.#connection = undefined;
    connection?.close();
  }
}

/** Merges equal transactions into one with all of their inputs, at the position of the first. */
function piecesOf(batch: readonly Pending[]): readonly Piece[] {
  const pieces = new Map<GroupTransaction, Piece>();
  for (const pending of batch) {
    const piece = pieces.get(pending.transaction) ?? { transaction: pending.transaction, members: [] };
    piece.members.push(pending);
    pieces.set(pending.transaction, piece);
  }
  return [...pieces.values()];
}
