/**
 * Writes of one connection, one transaction after the other, as in SQLite: what comes in while a commit is on its way
 * shares the next. Where the connection breaks before the answer to a commit, the server is asked what became of it.
 */
import type { ReservedSQL, SQL } from "bun";
import { AppError } from "../errors.ts";
import type { Ask, Script } from "../store.ts";
import { isOfServer, isRepeatable, problemOf } from "./problems.ts";
import { checkDurable } from "./server.ts";
import { answerOf, runScript, send } from "./statements.ts";

/** Scripts that share a commit: a longer transaction would delay the answers of those at its beginning. */
const BATCH_MAX = 64;
const TRIES = 5;
/** No try begins later. */
const TRIES_MS = 5000;
const TRY_AGAIN_MS = 20;

/** A server that was started again is another one. */
const STARTED = "pg_postmaster_start_time()::text AS started";

/** What a server says of a transaction at its beginning. */
interface Begun {
  readonly id: string;
  readonly started: string;
}

type GroupScript = (inputs: readonly unknown[]) => Script<readonly unknown[]>;

/** What is to be written: a script for one input; of equal scripts there may be one for all of their inputs. */
export interface Pending {
  readonly script: GroupScript;
  readonly input: unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Ended = { readonly result: unknown } | { readonly error: unknown };

/** A script with all inputs that it is given. */
interface Piece {
  readonly script: GroupScript;
  readonly members: Pending[];
}

interface Transaction {
  readonly connection: ReservedSQL;
  /** What it began with; the last answer has its number. */
  readonly begun: Promise<unknown>;
  readonly until: number;
  readonly ends: Map<Pending, Ended>;
  isOver: boolean;
}

/** Scripts failed together: each is run alone, and finds out for itself. */
class FailedTogether extends Error {}

export class PostgresWriter {
  readonly #sql: SQL;
  readonly #begin: string;
  #pending: Pending[] = [];
  #writing: Promise<void> | undefined;
  #connection: ReservedSQL | undefined;
  #failure: AppError | undefined;

  /** @param lock an expression that each transaction begins with */
  constructor(sql: SQL, lock: string) {
    this.#sql = sql;
    this.#begin = `BEGIN; SELECT ${lock}, pg_current_xact_id()::text AS id, ${STARTED},
      current_setting('synchronous_commit') AS durable`;
  }

  add(pending: Pending): void {
    this.#pending.push(pending);
    this.#writing ??= this.#writeAll();
  }

  /** Why the last commit failed; undefined where it did not. */
  get failure(): AppError | undefined {
    return this.#failure;
  }

  /** Resolves once all that was to be written is. */
  async close(): Promise<void> {
    await this.#writing;
    this.#connection?.release();
  }

  async #writeAll(): Promise<void> {
    await Promise.resolve(); // for what else came in with it
    while (this.#pending.length > 0) await this.#write(this.#pending.splice(0, BATCH_MAX));
    this.#writing = undefined;
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    try {
      const ends = await this.#commit(batch);
      this.#failure = undefined;
      for (const pending of batch) {
        const end = ends.get(pending)!;
        if ("error" in end) pending.reject(end.error);
        else pending.resolve(end.result);
      }
    } catch (error) {
      this.#failure = problemOf(error);
      for (const { reject } of batch) reject(this.#failure);
    }
  }

  /** Tries again where the server says that this may help; a connection that broke gives way to a new one. */
  async #commit(batch: readonly Pending[]): Promise<ReadonlyMap<Pending, Ended>> {
    const until = Date.now() + TRIES_MS;
    let pieces = piecesOf(batch);
    let isTogether = pieces.length === 1;
    for (let tries = 1; ; tries++) {
      try {
        this.#connection ??= await this.#sql.reserve();
        return await this.#transact(this.#connection, { pieces, isTogether, until });
      } catch (error) {
        await this.#renew();
        const isWorthIt = isRepeatable(error) || isOfServer(error) || error instanceof FailedTogether;
        if (!isWorthIt || tries === TRIES || Date.now() > until) throw error;
        if (error instanceof FailedTogether) {
          pieces = batch.map((pending) => ({ script: pending.script, members: [pending] }));
          isTogether = false;
        } else await Bun.sleep(TRY_AGAIN_MS * 2 ** tries * (0.5 + Math.random()));
      }
    }
  }

  /**
   * All scripts in one transaction. One that throws undoes itself alone.
   * @param isTogether there is one script only, whose last statements go with the commit. Throws `FailedTogether` where
   *   these fail, or a script with several inputs
   */
  async #transact(
    connection: ReservedSQL,
    { pieces, isTogether, until }: { pieces: readonly Piece[]; isTogether: boolean; until: number },
  ): Promise<ReadonlyMap<Pending, Ended>> {
    const begun = send(connection, this.#begin);
    const transaction: Transaction = { connection, begun, until, ends: new Map(), isOver: false };
    const marks = [begun];
    const commit = isTogether ? (last: Ask) => this.#finish(transaction, last) : undefined;
    for (const { script, members } of pieces) {
      if (!isTogether) marks.push(send(connection, "SAVEPOINT piece"));
      try {
        const results = await runScript(connection, script(members.map(({ input }) => input)), commit);
        for (const [i, member] of members.entries()) transaction.ends.set(member, { result: results[i] });
        if (!isTogether) marks.push(send(connection, "RELEASE SAVEPOINT piece"));
      } catch (error) {
        await Promise.all(marks); // which may say what came first
        if (isOfServer(error) || isRepeatable(error) || error instanceof FailedTogether) throw error;
        if (members.length > 1) throw new FailedTogether();
        transaction.ends.set(members[0]!, { error });
        await connection.unsafe(isTogether ? "ROLLBACK" : "ROLLBACK TO SAVEPOINT piece");
        transaction.isOver = isTogether;
      }
    }
    await Promise.all(marks);
    if (!transaction.isOver) await this.#finish(transaction);
    return transaction.ends;
  }

  /** Commits. Throws where that was not done, or nobody says whether it was. @param last goes with it */
  async #finish(transaction: Transaction, last?: Ask): Promise<void> {
    const { connection, begun, until } = transaction;
    const [begin] = ((await begun) as readonly [Begun & { durable: string }][]).at(-1)!;
    checkDurable(begin.durable);
    const asked = last && answerOf(connection, last);
    asked?.catch(() => {}); // the commit says so too
    transaction.isOver = true;
    try {
      const { command } = (await connection.unsafe("COMMIT")) as unknown as { command: string };
      if (command === "COMMIT") return;
    } catch (error) {
      if (await this.#isCommitted(begin, until)) return;
      throw error;
    }
    await asked?.catch((error: unknown) => {
      throw isOfServer(error) || isRepeatable(error) ? error : new FailedTogether();
    });
    throw new AppError("storage", "the database undid what was to be committed");
  }

  /**
   * What became of a commit whose answer did not come. Throws `storage` where nobody says until then, or nobody can: a
   * server that crashed since gives the number of a transaction that it forgot to another one.
   */
  async #isCommitted({ id, started }: Begun, until: number): Promise<boolean> {
    for (;;) {
      const [row] = await this.#sql
        .unsafe(`SELECT pg_xact_status($1::text::xid8) AS status, ${STARTED}`, [id])
        .catch(() => [undefined]); // it is asked again
      const found = (row ?? {}) as Partial<Begun> & { status?: string };
      const isSame = found.started === started;
      if (found.status === "aborted" || (found.status === "committed" && isSame)) return found.status === "committed";
      if (Date.now() > until || (row && !isSame))
        throw new AppError("storage", "the database does not say whether a commit was made");
      await Bun.sleep(TRY_AGAIN_MS);
    }
  }

  /** Ends the transaction that failed; where that fails too, the next one gets another connection. */
  async #renew(): Promise<void> {
    const connection = this.#connection;
    try {
      await connection?.unsafe("ROLLBACK");
    } catch {
      this.#connection = undefined;
      connection?.release();
    }
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
