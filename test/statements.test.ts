/** Statements of the gateway are portable between its databases; see `src/gateway/database/store.ts`. */
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { join, resolve } from "node:path";

const SRC = resolve(import.meta.dir, "../src");
/** Files with tables of one database; the others' are beside them. */
const OF_ONE_DATABASE =
  /(^base\/process-lock|\/tables|^gateway\/(database\/database|hooks\/(queue\/deliveries\/items|mail\/position)))\.ts$/;
const LITERAL = /`(?:[^`\\]|\\.)*`|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g;
const STATEMENT = /^.\s*(SELECT|INSERT|UPDATE|DELETE|WITH RECURSIVE)\s/;

/** Every statement in the folders of the gateway, with its file. */
async function statements(): Promise<{ file: string; text: string }[]> {
  const files = await Array.fromAsync(new Glob("{base,gateway}/**/*.ts").scan(SRC));
  const texts = await Promise.all(
    files.map(async (file) => ({ file, source: await Bun.file(join(SRC, file)).text() })),
  );
  return texts
    .filter(({ source }) => /database\/store\.ts"/.test(source))
    .flatMap(({ file, source }) => (source.match(LITERAL) ?? []).map((text) => ({ file, text })))
    .filter(({ file, text }) => STATEMENT.test(text) && !(OF_ONE_DATABASE.test(file) && /CREATE TABLE/.test(text)));
}

/** Reasons why a statement does not run everywhere. */
function problemsOf(text: string): string[] {
  const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
  const firsts = [...new Set(numbers)];
  return [
    /\?/.test(text.replaceAll(/\$\{[^}]*\}/g, "")) ? "has '?' for a parameter" : [],
    firsts.some((number, i) => number !== i + 1) ? "has parameters that do not first appear in order" : [],
    /\bAS [a-z]+[A-Z]/.test(text) ? "has an alias with capitals that is not in quotes" : [],
    /INSERT OR|json_each|->>/.test(text) ? "has words of one database" : [],
  ].flat();
}

test("statements that another database would refuse are found", () => {
  expect(problemsOf('"SELECT a AS aB FROM t WHERE a = ? AND b = $2"')).toHaveLength(3);
  expect(problemsOf("`INSERT OR IGNORE INTO t VALUES ($1, $2, $1)`")).toEqual(["has words of one database"]);
  expect(problemsOf('`SELECT a AS "aB" FROM t WHERE a IN (${a ? b : c}) AND b = $1`')).toEqual([]);
});

test("every statement runs on every database", async () => {
  const all = await statements();
  expect(all.length).toBeGreaterThan(60);
  expect(all.flatMap(({ file, text }) => problemsOf(text).map((problem) => `${file}: ${problem}: ${text}`))).toEqual(
    [],
  );
});
