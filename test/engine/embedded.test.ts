/** The gateway on SQLite: the PostgreSQL code is loaded only if a setting asks for it. */
import { join } from "node:path";
import { expect, test } from "bun:test";
import { Glob, Transpiler } from "bun";

const SRC = join(import.meta.dir, "../../src");
const ofPostgres = (path: string): boolean => path.includes("postgres");

test("modules of PostgreSQL are imported dynamically by all other modules", async () => {
  const transpiler = new Transpiler({ loader: "ts" });
  const kinds = new Set<string>();
  const early: string[] = [];
  for await (const path of new Glob("**/*.ts").scan({ cwd: SRC })) {
    if (ofPostgres(path)) continue;
    const code = await Bun.file(join(SRC, path)).text();
    if (!ofPostgres(code)) continue;
    for (const { path: from, kind } of transpiler.scanImports(code)) {
      if (!ofPostgres(from)) continue;
      kinds.add(kind);
      if (kind !== "dynamic-import") early.push(`${path}: ${from}`);
    }
  }
  expect(early).toEqual([]);
  expect([...kinds]).toEqual(["dynamic-import"]);
});
