/**
 * Responses that are kept for later requests: in one SQLite file, bounded by number, bytes and age. A response belongs
 * to the owner of the key that requested it; other owners find nothing.
 */
import { AppError, isObject, type Fields } from "../../base/index.ts";
import type { Config } from "../../base/config/index.ts";
import { openDatabase, type Database } from "../../gateway/database/database.ts";
import { JSON_BYTES_MAX } from "../http/body.ts";

/** Responses of one conversation. */
const CHAIN_MAX = 1000;

const MIGRATIONS = [
  {
    name: "responses",
    sql: `CREATE TABLE responses (
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, previous TEXT, used_ms INTEGER NOT NULL, bytes INTEGER NOT NULL,
            input TEXT NOT NULL, response TEXT NOT NULL
          ) STRICT;
          CREATE INDEX responses_by_use ON responses (used_ms, bytes)`,
  },
];

export interface KeptResponse {
  /** The response object. */
  readonly response: Fields;
  /** The items of its own input, each with an id. */
  readonly input: readonly Fields[];
  /** The id of the response that it continues. */
  readonly previous: string | undefined;
}

interface Conversation {
  /** Inputs and outputs, oldest first. */
  readonly items: readonly Fields[];
  /** The id of the first response that is not kept any more, if one is missing. */
  readonly missing: string | undefined;
}

interface Row {
  readonly previous: string | null;
  readonly bytes: number;
  readonly input: string;
  readonly response: string;
}

/** An owner and the id of a response. */
interface ResponseKey {
  readonly owner: string;
  readonly id: string;
}

export class KeptResponses {
  readonly #db: Database;
  readonly #limits: Config["responses"];
  readonly #now: () => number;

  /**
   * Throws `storage`.
   * @param now epoch milliseconds
   */
  constructor(path: string, limits: Config["responses"], now: () => number) {
    this.#db = openDatabase(path, MIGRATIONS);
    this.#db.run("PRAGMA secure_delete = ON"); // overwrites deleted texts
    this.#limits = limits;
    this.#now = now;
  }

  /** Keeps a response, and removes others beyond the limits. Throws `storage`, or `too_large` for one beyond them. */
  keep({ owner, id }: ResponseKey, { response, input, previous }: KeptResponse): void {
    const texts = [JSON.stringify(input), JSON.stringify(response)] as const;
    const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    const { bytes: most } = this.#limits;
    if (bytes > most) {
      throw new AppError("too_large", `a response: expected at most ${most} bytes with its input, got ${bytes}`);
    }
    stored(() => {
      this.#db.run(
        "INSERT INTO responses (id, owner, previous, used_ms, bytes, input, response) VALUES (?,?,?,?,?,?,?)",
        [id, owner, previous ?? null, this.#now(), bytes, ...texts],
      );
      this.#trim();
    });
  }

  find({ owner, id }: ResponseKey): KeptResponse | undefined {
    const row = this.#row({ owner, id });
    return row && { response: fieldsOf(row.response), input: itemsOf(row.input), previous: row.previous ?? undefined };
  }

  /** The conversation that ends with a response. Counts as a use of all its responses. Throws `too_large`. */
  conversation({ owner, id }: ResponseKey): Conversation {
    const parts: (readonly Fields[])[] = [];
    let bytes = 0;
    for (let at: string | undefined = id; at !== undefined;) {
      const row = this.#row({ owner, id: at });
      if (!row) return { items: parts.toReversed().flat(), missing: at };
      bytes += row.bytes;
      if (parts.length >= CHAIN_MAX || bytes > JSON_BYTES_MAX) {
        const most = `${CHAIN_MAX} responses and ${JSON_BYTES_MAX} bytes`;
        throw new AppError("too_large", `previous_response_id: expected a conversation of at most ${most}, got more`);
      }
      parts.push([...itemsOf(row.input), ...itemsOf(fieldsOf(row.response)["output"])]);
      stored(() => this.#db.run("UPDATE responses SET used_ms = ? WHERE id = ?", [this.#now(), at!]));
      at = row.previous ?? undefined;
    }
    return { items: parts.toReversed().flat(), missing: undefined };
  }

  /** Returns false if it was not stored. Its text is removed from the disk at once. Throws `storage`. */
  remove({ owner, id }: ResponseKey): boolean {
    return stored(() => {
      const { changes } = this.#db.run("DELETE FROM responses WHERE id = ? AND owner = ?", [id, owner]);
      if (changes > 0) this.#db.run("PRAGMA wal_checkpoint(TRUNCATE)"); // the log still has the text
      return changes > 0;
    });
  }

  close(): void {
    this.#db.close();
  }

  #row({ owner, id }: ResponseKey): Row | undefined {
    const query = this.#db.query<Row, [string, string, number]>(
      "SELECT previous, bytes, input, response FROM responses WHERE id = ? AND owner = ? AND used_ms >= ?",
    );
    return stored(() => query.get(id, owner, this.#oldest())) ?? undefined;
  }

  /** Removes the responses that were used longest ago. */
  #trim(): void {
    const { count, bytes } = this.#limits;
    this.#db.run("DELETE FROM responses WHERE used_ms < ?", [this.#oldest()]);
    const total = this.#db
      .query<{ count: number; bytes: number }, []>("SELECT count(*) AS count, sum(bytes) AS bytes FROM responses")
      .get()!; // an aggregate has a row
    if (total.count <= count && total.bytes <= bytes) return;
    this.#db.run(
      `DELETE FROM responses WHERE rowid IN (
         SELECT rowid FROM (
           SELECT rowid, sum(bytes) OVER newest AS total, row_number() OVER newest AS place
           FROM responses WINDOW newest AS (ORDER BY used_ms DESC, rowid DESC)
         ) WHERE total > ? OR place > ?)`,
      [Math.min(bytes, Number.MAX_SAFE_INTEGER), count],
    );
  }

  /** The time of use from which responses are kept. */
  #oldest(): number {
    return Math.max(0, this.#now() - this.#limits.ageMs);
  }
}

/** Throws `storage` where SQLite throws. */
function stored<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new AppError("storage", `the kept responses cannot be used: ${message}`, { cause: error });
  }
}

/** Our own JSON. */
const fieldsOf = (text: string): Fields => JSON.parse(text) as Fields;

const itemsOf = (value: unknown): readonly Fields[] => {
  const list: unknown = typeof value === "string" ? JSON.parse(value) : value;
  return Array.isArray(list) ? list.filter(isObject) : [];
};
