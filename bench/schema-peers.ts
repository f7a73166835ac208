/**
 * Do our grammars of JSON schemas allow what llama.cpp's allow? The values of JSON Schema's own test suite under both.
 * Lists the four kinds of difference by schema.
 *
 *   bun bench/schema-peers.ts LLAMA_CPP FOLDER [--draft draft2020-12] [--brief]
 *
 * LLAMA_CPP is a source folder, with the libraries in its folder `build/bin`; FOLDER as for schema-suite.ts. Fails if
 * llama.cpp allows a valid value that we refuse, unless docs/api.md explains it. Needs g++.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { schemaGrammar } from "../src/engine/text/sampling/schema/compile.ts";
import { byteCompiler } from "./byte-grammar.ts";
import { linesOf, programBeside } from "./llama-source.ts";
import { allows, suiteGroups, type Group } from "./suite-values.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { draft: { type: "string", default: "draft2020-12" }, brief: { type: "boolean", default: false } },
});
const [given, suite] = positionals;
if (given === undefined || suite === undefined) throw new Error("expected the source of llama.cpp, and a suite");
const source = resolve(given);

const counts = new Map<string, number>();
const listed = new Map<string, string[]>();
const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);

const folder = await mkdtemp(join(tmpdir(), "hearth-schemas-"));
try {
  const includes = ["include", "ggml/include", "src", "common", "vendor"];
  await programBeside(source, { name: "schema-grammars", folder, includes, libraries: ["llama-common"] });
  await programBeside(source, { name: "grammar-texts", folder, includes });
  const groups = suiteGroups(suite, flags.draft);
  const theirs = await run(
    "schema-grammars",
    groups.map(({ schema }) => hexOf(JSON.stringify(schema))),
  );
  for (const [i, group] of groups.entries()) await check(group, theirs[i]!); // a line for each
} finally {
  byteCompiler.dispose();
  await rm(folder, { recursive: true });
}
for (const [what, times] of [...counts].sort()) console.log(`${String(times).padStart(5)}  ${what}`);
for (const [what, lines] of flags.brief ? [] : [...listed].sort()) {
  console.log(`\n${what}`);
  for (const line of lines) console.log(`  ${line}`);
}

async function check({ name, schema, tests }: Group, theirs: string): Promise<void> {
  const isTakenThere = !theirs.startsWith("refused");
  const isTakenHere = isTaken(schema);
  if (!isTakenHere || !isTakenThere) {
    const who = isTakenHere ? "here only" : isTakenThere ? "there only" : "by neither";
    count(`schemas taken ${who}`);
    if (isTakenThere) listed.set("schemas taken there only", [...(listed.get("schemas taken there only") ?? []), name]);
    return;
  }
  count("schemas taken by both");
  const texts = tests.map(({ data }) => JSON.stringify(data));
  const answers = await run("grammar-texts", [`grammar ${theirs}`, ...texts.map((text) => `match ${hexOf(text)}`)]);
  for (const [i, { valid, description }] of tests.entries()) {
    const here = await allows(schema, texts[i]!);
    const there = answers[i + 1] === "yes";
    if (here === there) {
      count("values decided alike");
      continue;
    }
    const kind = `${valid ? "valid" : "invalid"} values allowed ${here ? "here" : "there"} only`;
    count(kind);
    const lines = listed.get(kind) ?? [];
    const heading = `${name}: ${JSON.stringify(schema, (key, value) => (key === "$schema" ? undefined : value))}`;
    if (!lines.includes(heading)) lines.push(heading);
    listed.set(kind, [...lines, `    ${texts[i]} (${description})`]);
  }
}

function isTaken(schema: Group["schema"]): boolean {
  try {
    schemaGrammar(schema);
    return true;
  } catch {
    return false;
  }
}

function hexOf(text: string): string {
  return Buffer.from(text).toString("hex");
}

function run(name: string, lines: readonly string[]): Promise<string[]> {
  return linesOf(source, { program: join(folder, name), name, lines });
}
