/**
 * Compares chat templates rendered by us and by Python's jinja2, byte by byte: every template found, times the thirteen
 * conversations of the tests.
 *
 *   bun bench/templates.ts [FOLDER…]
 *
 * Folders are searched for `.jinja`, `.jinja2` and `.gguf` files (their `tokenizer.chat_template`); our own templates
 * and models are always included. Equal texts count once. Needs python3 with jinja2.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { parseJinja } from "../src/engine/text/template/jinja.ts";
import { namedTemplate } from "../src/engine/text/template/named-templates.ts";
import { RENDERERS } from "../src/engine/text/template/named.ts";
import { CONVERSATIONS } from "../test/engine/text/template/conversations.ts";

const NOW = new Date(2026, 10, 21, 9, 5, 7); // the same as in make.py
const OWN = join(import.meta.dir, "../models/templates");
const SHOWN = 40; // characters shown around a difference

/** Known reasons for differences of some templates. */
const EXPLAINED: readonly (readonly [file: string, why: string])[] = [
  ["functionary-medium-v3.1.jinja", "jinja2 makes `&#34;` of quotes in JSON that is added to a text marked safe"],
  ["llama-cpp-deepseek-r1.jinja", "jinja2 cannot write a generator as JSON, which ours takes as a list"],
];

interface Rendered {
  readonly text: string;
  readonly error?: string;
}

const templates = new Map<string, string>(); // name by source
for (const name of RENDERERS) add(namedTemplate(name), `renderer ${name}`);
for (const folder of [join(import.meta.dir, "../models"), ...process.argv.slice(2)]) {
  for (const path of filesIn(folder)) add(await templateIn(path), path.slice(folder.length + 1));
}
const contexts = CONVERSATIONS.map(({ context }) => context);
const reference = await renderByJinja2([...templates.keys()], contexts);

let equal = 0;
let unexplained = 0;
const refused = new Map<string, number>(); // renderings by template and reason
let i = 0;
for (const [source, name] of templates) {
  for (const [at, theirs] of reference[i++]!.entries()) {
    const ours = renderByUs(source, contexts[at]!);
    if (ours.error !== undefined && theirs.error !== undefined) count(`${name}: ${ours.error}`);
    else if (ours.error === theirs.error && ours.text === theirs.text) equal++;
    else {
      const why = EXPLAINED.find(([file]) => name.endsWith(file))?.[1];
      if (why === undefined) unexplained++;
      console.log(`${name} · ${CONVERSATIONS[at]!.name}: ${why ?? difference(ours, theirs)}`);
    }
  }
}
console.log("\nrefused by both:");
for (const [what, times] of refused) console.log(`  ${times} × ${what}`);
const total = templates.size * contexts.length;
const same = equal + [...refused.values()].reduce((sum, times) => sum + times, 0);
console.log(
  `${templates.size} templates × ${contexts.length} conversations = ${total}: ${equal} equal, ${same - equal} refused ` +
    `by both, together ${((100 * same) / total).toFixed(1)} %; ${total - same} different, ${unexplained} of them without a reason`,
);
process.exitCode = unexplained > 0 ? 1 : 0;

function count(what: string): void {
  refused.set(what, (refused.get(what) ?? 0) + 1);
}

function add(source: string | undefined, name: string): void {
  if (source !== undefined && !templates.has(source)) templates.set(source, name);
}

/** Every template file below a folder, except our own, which are listed above. */
function filesIn(folder: string): string[] {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`${folder}: expected a folder`);
  const found = readdirSync(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile() && /\.(jinja2?|gguf)$/.test(entry.name))
    .filter((entry) => entry.parentPath !== OWN && !entry.parentPath.startsWith(`${OWN}/`))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

async function templateIn(path: string): Promise<string | undefined> {
  if (!path.endsWith(".gguf")) return await Bun.file(path).text();
  const gguf = await openGguf(path);
  const source = gguf.metadata.get("tokenizer.chat_template");
  return typeof source === "string" ? source : undefined;
}

async function renderByJinja2(sources: readonly string[], contexts: readonly object[]): Promise<Rendered[][]> {
  const python = Bun.spawn(["python3", join(import.meta.dir, "templates.py")], {
    stdin: new Blob([JSON.stringify({ templates: sources, contexts })]),
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await python.stdout.text();
  if ((await python.exited) !== 0) throw new Error("templates.py failed: is there a python3 with jinja2?");
  return JSON.parse(text) as Rendered[][];
}

function renderByUs(source: string, context: Record<string, unknown>): Rendered {
  try {
    return { text: parseJinja(source).render(context, NOW) };
  } catch (error) {
    return { text: "", error: (error as Error).message };
  }
}

function difference(ours: Rendered, theirs: Rendered): string {
  if (ours.error !== undefined) return `only we refuse: ${ours.error}`;
  if (theirs.error !== undefined) return `only jinja2 refuses: ${theirs.error}`;
  let at = 0;
  while (ours.text[at] === theirs.text[at]) at++;
  const around = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - SHOWN), at + SHOWN));
  return `at ${at}: ours ${around(ours.text)}, jinja2's ${around(theirs.text)}`;
}
