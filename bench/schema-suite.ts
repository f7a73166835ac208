/**
 * Do our grammars allow the values that JSON Schema's own test suite calls valid, and refuse the others?
 *
 *   bun bench/schema-suite.ts FOLDER [--draft draft2020-12] [--list]
 *
 * FOLDER has the suite's `tests`: the source package of Python's `jsonschema` has it under `json/tests`. `--list` names
 * each valid value that is refused, and each schema that is refused. An invalid value that is allowed is a fault,
 * except those in docs/api.md: `oneOf`, closed objects of several parts, and keywords that `strict` refuses.
 */
import { parseArgs } from "node:util";
import { messageOf } from "../src/base/index.ts";
import { schemaGrammar } from "../src/engine/text/sampling/schema/compile.ts";
import { byteCompiler } from "./byte-grammar.ts";
import { allows, suiteGroups, type Group } from "./suite-values.ts";

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

for (const group of suiteGroups(folder, flags.draft)) await check(group);
byteCompiler.dispose();
for (const [what, times] of [...counts].sort()) console.log(`${String(times).padStart(5)}  ${what}`);
for (const line of [...(flags.list ? listed : []), ...faults]) console.log(line);
process.exitCode = faults.length > 0 ? 1 : 0;

async function check({ name, schema, tests }: Group): Promise<void> {
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
