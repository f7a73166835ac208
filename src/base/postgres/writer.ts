/**
 * Writes of one connection, one transaction after the other, as in SQLite: what comes in while a commit is on its way
 * shares the next. Where the connection breaks before the answer to a commit, the server is asked what became of it.
 */
import type { ReservedSQL, SQL } from "bun";
import { AppError } from "../errors.ts";
import type { Script } from "../store.ts";
import { isOfServer, isRepeatable, problemOf } from "./problems.ts";
import { checkDurable } from "./server.ts";
import { runScript, send } from "./statements.ts";

/** Scripts that share a commit: a longer transaction would delay the answers of those at its beginning. */
const BATCH_MAX = 64;
const TRIES = 5;
/** No try begins later. */
const TRIES_MS = 5000;
const TRY_AGAIN_MS = 20;

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
  readonly begin: string;
  /** As the server counts them; undefined until it said so. */
  id: string | undefined;
  isCommitting: boolean;
  readonly ends: Map<Pending, Ended>;
}

/** A script failed that was given several inputs: which of them it was, nobody knows. */
class GroupFailed extends Error {}

export class PostgresWriter {
  readonly #sql: SQL;
  readonly #begin: string;
  #pending: Pending[] = [];
  #writing: Promise<void> | undefined;
  #connection: ReservedSQL | undefined;
  #failure: AppError | undefined;

  /** @param lock a statement that each transaction begins with */
  constructor(sql: SQL, lock: string) {
    this.#sql = sql;
    this.#begin = `BEGIN; ${lock};
      SELECT pg_current_xact_id()::text AS id, current_setting('synchronous_commit') AS durable`;
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
    for (let tries = 1; ; tries++) {
      const transaction: Transaction = { begin: this.#begin, id: undefined, isCommitting: false, ends: new Map() };
      try {
        this.#connection ??= await this.#sql.reserve();
        await transact(this.#connection, pieces, transaction);
        return transaction.ends;
      } catch (error) {
        await this.#renew();
        if (error instanceof GroupFailed) {
          pieces = batch.map(({ script, ...rest }) => ({ script, members: [{ script, ...rest }] }));
          continue;
        }
        if (transaction.isCommitting && (await this.#isCommitted(transaction, until))) return transaction.ends;
        const isWorthIt = isRepeatable(error) || isOfServer(error);
        if (!isWorthIt || tries === TRIES || Date.now() > until) throw error;
        await Bun.sleep(TRY_AGAIN_MS * 2 ** tries * (0.5 + Math.random()));
      }
    }
  }

  /** What became of a commit whose answer did not come. Throws `storage` where nobody says until then. */
  async #isCommitted({ id }: Transaction, until: number): Promise<boolean> {
    for (;;) {
      const [row] = await this.#sql
        .unsafe("SELECT pg_xact_status($1::text::xid8) AS status", [id!])
        .catch(() => [undefined]); // it is asked again
      const { status } = (row ?? {}) as { status?: string };
      if (status === "committed" || status === "aborted") return status === "committed";
      if (Date.now() > until) throw new AppError("storage", "the database does not say whether a commit was made");
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

/** All scripts in one transaction. One that throws undoes itself alone; for one of several it throws `GroupFailed`. */
async function transact(connection: ReservedSQL, pieces: readonly Piece[], transaction: Transaction): Promise<void> {
  const begun = send(connection, transaction.begin) as Promise<readonly (readonly unknown[])[]>;
  const marks: Promise<unknown>[] = [begun];
  for (const { script, members } of pieces) {
    if (pieces.length > 1) marks.push(send(connection, "SAVEPOINT piece"));
    try {
      const results = await runScript(connection, script(members.map(({ input }) => input)));
      for (const [i, member] of members.entries()) transaction.ends.set(member, { result: results[i] });
      if (pieces.length > 1) marks.push(send(connection, "RELEASE SAVEPOINT piece"));
    } catch (error) {
      await Promise.all(marks); // which may say what came first
      if (isOfServer(error) || isRepeatable(error)) throw error;
      if (members.length > 1) throw new GroupFailed();
      transaction.ends.set(members[0]!, { error });
      if (pieces.length === 1) return void (await connection.unsafe("ROLLBACK"));
      await connection.unsafe("ROLLBACK TO SAVEPOINT piece");
    }
  }
  const [answers] = await Promise.all([begun, ...marks]);
  const { id, durable } = answers.at(-1)![0] as { id: string; durable: string };
  checkDurable(durable);
  transaction.id = id;
  transaction.isCommitting = true;
  const { command } = (await connection.unsafe("COMMIT")) as unknown as { command: string };
  if (command !== "COMMIT") throw new AppError("storage", "the database undid what was to be committed");
}
