/**
 * Do our grammars allow the values that JSON Schema's own test suite calls valid, and refuse the others?
 *
 *   bun bench/schema-suite.ts FOLDER [--draft draft2020-12] [--list]
 *
 * FOLDER has the suite's `tests`: the source package of Python's `jsonschema` has it under `json/tests`. `--list` names
 * each valid value that is refused, and each schema that is refused. An invalid value that is allowed is a fault,
 * except those in docs/api.md: `oneOf`, closed objects of several parts, and keywords that `strict` refuses.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "../src/base/index.ts";
import { schemaGrammar } from "../src/engine/text/sampling/schema/compile.ts";
import { byteCompiler, mayEnd } from "./byte-grammar.ts";

interface Group {
  readonly description: string;
  readonly schema: boolean | Readonly<Record<string, unknown>>;
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[];
}

/** Schemas whose parts close an object or a list together here, and each for itself in JSON Schema. */
const TOGETHER = /unevaluated|additionalProperties/;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { draft: { type: "string", default: "draft2020-12" }, list: { type: "boolean", default: false } },
});
const [folder] = positionals;
if (folder === undefined) throw new Error("expected a folder with the suite's tests");

const counts = new Map<string, number>();
const listed: string[] = [];
const faults: string[] = [];
const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);

const draft = join(folder, flags.draft);
for (const file of readdirSync(draft).filter((name) => name.endsWith(".json"))) {
  for (const group of JSON.parse(readFileSync(join(draft, file), "utf8")) as Group[]) {
    await check(`${file} · ${group.description}`, group);
  }
}
byteCompiler.dispose();
for (const [what, times] of [...counts].sort()) console.log(`${String(times).padStart(5)}  ${what}`);
for (const line of [...(flags.list ? listed : []), ...faults]) console.log(line);
process.exitCode = faults.length > 0 ? 1 : 0;

async function check(name: string, { schema: given, tests }: Group): Promise<void> {
  const schema = given === true ? {} : given === false ? { not: {} } : given;
  let left: readonly string[];
  try {
    ({ left } = schemaGrammar(schema));
  } catch (error) {
    count("schemas refused");
    listed.push(`refused: ${name}: ${messageOf(error)}`);
    return;
  }
  count(left.length > 0 ? "schemas allowed, not for strict requests" : "schemas allowed");
  const text = JSON.stringify(schema);
  for (const { description, data, valid } of tests) {
    const isAllowed = await allows(schema, JSON.stringify(data));
    const why =
      left.length > 0 ? "not strict" : text.includes('"oneOf"') ? "oneOf" : TOGETHER.test(text) ? "parts" : "";
    const isExcused = isAllowed && !valid && why !== "";
    count(`${valid ? "valid" : "invalid"} values ${isAllowed ? "allowed" : "refused"}${isExcused ? `: ${why}` : ""}`);
    const line = `${valid ? "valid" : "invalid"}: ${name} · ${description}: ${JSON.stringify(data)}`;
    if (valid && !isAllowed) listed.push(line);
    if (!valid && isAllowed && !isExcused) faults.push(line);
  }
}

/** Returns whether a grammar allows a text as a whole answer. */
async function allows(schema: Readonly<Record<string, unknown>>, text: string): Promise<boolean> {
  const matcher = await byteCompiler.matcher(schema);
  try {
    for (const byte of new TextEncoder().encode(text)) {
      if ((await matcher.isOver()) || !matcher.accept(byte)) return false;
    }
    if (await matcher.isOver()) return true;
    const mask = await matcher.mask();
    return mask === undefined || mayEnd(mask);
  } finally {
    matcher.dispose();
  }
}
