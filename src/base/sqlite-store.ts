/** A store in a SQLite file: scripts run without a pause, writes share commits. */
import { Writer, type Database } from "./database.ts";
import type { AppError } from "./errors.ts";
import type { Script, Statement, Store, Value } from "./store.ts";

/** Statements that stay prepared; texts with lists have many forms. */
const PREPARED_MAX = 256;

type Prepared = ReturnType<Database["prepare"]>;

/** Owns the database from now on. */
export class SqliteStore implements Store {
  readonly #db: Database;
  readonly #writer: Writer;
  readonly #prepared = new Map<string, Prepared>();

  constructor(db: Database) {
    this.#db = db;
    this.#writer = new Writer(db);
  }

  write<T>(script: () => Script<T>): Promise<T> {
    return this.#writer.write(() => this.#run(script()));
  }

  read<T>(script: () => Script<T>): Promise<T> {
    return Promise.try(() => this.#run(script()));
  }

  get failure(): AppError | undefined {
    return this.#writer.failure;
  }

  async close(): Promise<void> {
    await this.#writer.close();
    for (const statement of this.#prepared.values()) statement.finalize();
    this.#prepared.clear();
    this.#db.close();
  }

  #run<T>(script: Script<T>): T {
    let step = script.next();
    while (!step.done) {
      let answer: unknown;
      try {
        answer = this.#answer(step.value);
      } catch (error) {
        step = script.throw(error);
        continue;
      }
      step = script.next(answer);
    }
    return step.value;
  }

  #answer({ text, values, wants }: Statement): unknown {
    const prepared = this.#prepare(typeof text === "string" ? text : text.sqlite);
    const bound = values as Value[]; // bound, not kept
    switch (wants) {
      case "one":
        return prepared.get(...bound) ?? undefined;
      case "all":
        return prepared.all(...bound);
      case "changes":
        return prepared.run(...bound).changes;
      default:
        return wants satisfies never;
    }
  }

  #prepare(text: string): Prepared {
    const known = this.#prepared.get(text);
    if (known) return known;
    if (this.#prepared.size >= PREPARED_MAX) {
      for (const statement of this.#prepared.values()) statement.finalize();
      this.#prepared.clear();
    }
    const prepared = this.#db.prepare(text);
    this.#prepared.set(text, prepared);
    return prepared;
  }
}
