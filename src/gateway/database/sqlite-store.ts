/** A store in a SQLite file: transactions run synchronously, writes share commits. */
import { Writer, type Database } from "./database.ts";
import { AppError } from "../../base/index.ts";
import { isList, type Query, type Insert, type Transaction, type Store, type Value } from "./store.ts";

/** Statements that stay prepared; texts with lists have many forms. */
const PREPARED_MAX = 256;

type Prepared = ReturnType<Database["prepare"]>;

type GroupTransaction = (inputs: readonly unknown[]) => Transaction<readonly unknown[]>;

interface PendingInput {
  readonly input: unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Takes ownership of the database. */
export class SqliteStore implements Store {
  readonly #db: Database;
  readonly #writer: Writer;
  readonly #prepared = new Map<string, Prepared>();
  /** Inputs of transactions that have not run yet. */
  readonly #waiting = new Map<GroupTransaction, PendingInput[]>();

  constructor(db: Database) {
    this.#db = db;
    this.#writer = new Writer(db);
  }

  write<T>(transaction: () => Transaction<T>): Promise<T> {
    return this.#writer.write(() => this.#run(transaction()));
  }

  writeEach<I, O>(transaction: (inputs: readonly I[]) => Transaction<readonly O[]>, input: I): Promise<O> {
    const { promise, resolve, reject } = Promise.withResolvers<O>();
    const asked = { input, resolve: resolve as (result: unknown) => void, reject };
    const waiting = this.#waiting.get(transaction as GroupTransaction);
    if (waiting) waiting.push(asked);
    else void this.#writeGroup(transaction as GroupTransaction, [asked]);
    return promise;
  }

  /** @param group further inputs may join it until it runs */
  async #writeGroup(transaction: GroupTransaction, group: PendingInput[]): Promise<void> {
    this.#waiting.set(transaction, group);
    const leave = (): void => {
      if (this.#waiting.get(transaction) === group) this.#waiting.delete(transaction);
    };
    try {
      const results = await this.#writer.write(() => {
        leave();
        return this.#run(transaction(group.map(({ input }) => input)));
      });
      for (let i = 0; i < group.length; i++) group[i]!.resolve(results[i]);
    } catch (error) {
      leave(); // it may not have run yet
      const isLost = error instanceof AppError && error.code === "storage";
      if (group.length === 1 || isLost) for (const { reject } of group) reject(error);
      else
        for (const each of group)
          this.#writer.write(() => this.#run(transaction([each.input]))[0]).then(each.resolve, each.reject);
    }
  }

  read<T>(transaction: () => Transaction<T>): Promise<T> {
    return Promise.try(() => this.#run(transaction()));
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

  #run<T>(transaction: Transaction<T>): T {
    let step = transaction.next();
    while (!step.done) {
      let answer: unknown;
      try {
        answer = this.#answer(step.value);
      } catch (error) {
        step = transaction.throw(error);
        continue;
      }
      step = transaction.next(answer);
    }
    return step.value;
  }

  #answer(query: Query): unknown {
    if (isList(query)) return query.map((each) => this.#answer(each));
    if (query.wants === "inserted") return this.#insert(query.insert);
    if (query.wants === "one of each") {
      const prepared = this.#prepare(query.text);
      return query.rows.map((row) => prepared.get(...row) ?? undefined);
    }
    const { text, values, wants } = query;
    const prepared = this.#prepare(typeof text === "string" ? text : text.sqlite);
    const bound = values as Value[]; // values are bound, not retained
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

  #insert({ table, columns, rows, ending = "" }: Insert): void {
    const placeholders = columns.map((_, i) => `$${i + 1}`).join(", ");
    const prepared = this.#prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${placeholders}) ${ending}`);
    for (const row of rows) prepared.run(...row);
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
