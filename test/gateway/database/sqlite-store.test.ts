import { expect, test } from "bun:test";
import {
  execute,
  placeholders,
  queryAll,
  queryOne,
  undoable,
  type Transaction,
} from "../../../src/gateway/database/store.ts";
import { openStore } from "../../stores.ts";

const TABLE = { name: "words", sql: "CREATE TABLE words (word TEXT PRIMARY KEY) STRICT" };
const put = (word: string): Transaction<number> => execute("INSERT INTO words VALUES ($1)", word);
function* words(): Transaction<string[]> {
  return (yield* queryAll<{ word: string }>("SELECT word FROM words ORDER BY word")).map(({ word }) => word);
}

test("a script gets rows, one row or none, and the number of changed rows", async () => {
  const store = openStore([TABLE]);
  const result = await store.write(function* () {
    return [yield* put("a"), yield* put("b"), yield* queryOne("SELECT word FROM words WHERE word = $1", "z")];
  });
  expect(result).toEqual([1, 1, undefined]);
  expect(await store.read(words)).toEqual(["a", "b"]);
  const values = ["b", "a"];
  const found = store.read(() =>
    queryAll(`SELECT word FROM words WHERE word IN (${placeholders(values, 1)})`, ...values),
  );
  expect(await found).toHaveLength(2);
});

test("a script that throws undoes only itself, and one that catches a statement's error continues", async () => {
  const store = openStore([TABLE]);
  const failing = store.write(function* () {
    yield* put("half");
    throw new TypeError("mine");
  });
  const going = store.write(function* () {
    yield* put("one");
    try {
      yield* put("one");
    } catch {
      return yield* put("two");
    }
    return undefined;
  });
  await expect(failing).rejects.toThrow(new TypeError("mine"));
  expect(await going).toBe(1);
  expect(await store.read(words)).toEqual(["one", "two"]);
});

test("an undoable part that throws keeps what was written before it, also within another", async () => {
  const store = openStore([TABLE]);
  function* inner(): Transaction<void> {
    yield* put("inner");
    throw new Error("inner");
  }
  function* outer(): Transaction<string> {
    yield* put("outer");
    try {
      yield* undoable(inner());
    } catch (error) {
      return (error as Error).message;
    }
    return "none";
  }
  const caught = await store.write(function* () {
    yield* put("before");
    return yield* undoable(outer());
  });
  expect([caught, await store.read(words)]).toEqual(["inner", ["before", "outer"]]);
});

test("a full disk that undoes the transaction makes it fail, also within an undoable part", async () => {
  const store = openStore([TABLE]);
  const pages = await store.read(() => queryOne<{ page_count: number }>("PRAGMA page_count"));
  await store.read(() => queryOne(`PRAGMA max_page_count = ${pages!.page_count}`));
  const full = store.write(function* () {
    yield* put("before");
    yield* undoable(put("x".repeat(100_000)));
  });
  await expect(full).rejects.toMatchObject({ code: "storage", message: expect.stringContaining("full") });
  expect(await store.read(words)).toEqual([]);
});

test("more statements than are kept prepared all work", async () => {
  const store = openStore([TABLE]);
  for (let n = 0; n < 600; n++) expect(await store.read(() => queryOne(`SELECT ${n} AS n`))).toEqual({ n });
  expect(await store.read(() => queryOne("SELECT 0 AS n"))).toEqual({ n: 0 });
});
