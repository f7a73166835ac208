/**
 * Do our GBNF grammars allow the same texts as llama.cpp's? Its own examples and more, with texts that llama.cpp
 * allows, chosen at random, and the same with a character changed, added or left out.
 *
 *   bun bench/grammars.ts LLAMA_CPP [--count 200]    a source folder, with the libraries in its folder `build/bin`
 *
 * Not compared, because only ours allows them: `_` in names, and a bar that begins a line outside brackets. A large
 * class beyond ASCII allows all characters beyond ASCII, as docs/api.md says. Needs g++.
 */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "../src/base/index.ts";
import { makeRng, type Rng } from "../src/engine/text/rng.ts";
import { answerGrammar } from "../src/engine/text/sampling/answer-grammar.ts";
import type { OwnGrammar } from "../src/engine/text/sampling/grammar.ts";
import { linesOf, programBeside } from "./llama-source.ts";
import { byteCompiler, mayEnd } from "./byte-grammar.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { count: { type: "string", default: "200" } },
});
const [given] = positionals;
if (given === undefined) throw new Error("expected a folder with the source of llama.cpp");
const source = resolve(given);

/** Notation that the examples do not use, or use once. */
const OWN: Readonly<Record<string, string>> = {
  classes: 'root ::= [a-c-]+ [^x-z\\]\\n]* "]"?',
  counts: 'root ::= "a"{2} ("b" | "c"){1,3} [0-9]{2,} "d"{0,1} "e"{0}',
  escapes: 'root ::= "\\x41\\u00e9\\U0001F600\\t\\\\" [\\x30-\\x39] "\\"" | "\\n\\r"',
  empty: 'root ::= ("a" | ) b\nb ::= | "b" b',
  lines: 'root ::= (\n  "a" # one\n  | "b"\n)+\n\n# between\nrest-2 ::= root',
  any: 'root ::= . . "x" .*',
  beyond: "root ::= [é中ぁ-ゖ]+ [^é]",
  recursive: 'root ::= "(" root ")" root | "x"?',
  nested: 'root ::= ((("a"+ "b")? "c")* "d"){1,2}',
};
/** Grammars with large classes beyond ASCII, for which we may allow more texts. */
const LARGE_CLASSES = ["japanese.gbnf"];
/** Grammars that neither program may accept. */
const WRONG = [
  'root ::= "a',
  "root ::= [a",
  "root = x",
  'other ::= "a"',
  "root ::= x",
  'root ::= "a" )',
  'root ::= "\\q"',
];

const grammars = new Map(Object.entries(OWN));
for (const [i, text] of WRONG.entries()) grammars.set(`wrong ${i}`, text);
for (const file of (await readdir(join(source, "grammars"))).filter((name) => name.endsWith(".gbnf")).sort()) {
  grammars.set(file, await readFile(join(source, "grammars", file), "utf8"));
}

const folder = await mkdtemp(join(tmpdir(), "hearth-grammars-"));
try {
  await programBeside(source, { name: "grammar-texts", folder, includes: ["include", "ggml/include", "src"] });
  console.log("grammar              llama.cpp  here     texts  allowed  differ");
  for (const [name, text] of grammars) await check(name, text);
} finally {
  byteCompiler.dispose();
  await rm(folder, { recursive: true });
}

async function check(name: string, text: string): Promise<void> {
  const seeds = Array.from({ length: Number(flags.count) }, (_, i) => i + 1);
  const [taken, ...written] = await llama([`grammar ${hexOf(text)}`, ...seeds.map((seed) => `write ${seed}`)]);
  const ours = grammarOf(text);
  const isTaken = typeof ours !== "string";
  const rng = makeRng(7);
  const fitting = written.filter((hex) => hex !== "-" && hex !== "no").map((hex) => Buffer.from(hex, "hex").toString());
  const texts = [...new Set(["", ...fitting, ...fitting.map((each) => changed(each, rng))])];
  const theirs = (await llama([`grammar ${hexOf(text)}`, ...texts.map((each) => `match ${hexOf(each)}`)])).slice(1);
  const differ: string[] = [];
  let allowed = 0;
  for (const [i, each] of texts.entries()) {
    const isAllowed = isTaken && (await allows(ours, each));
    if (isAllowed) allowed++;
    const isExcused = isAllowed && LARGE_CLASSES.includes(name);
    if (isAllowed !== (theirs[i] === "yes") && !isExcused)
      differ.push(`${isAllowed ? "here" : "there"} only: ${JSON.stringify(each)}`);
  }
  const isSame = (taken === "ok") === isTaken && differ.length === 0;
  const counts = `${String(texts.length).padStart(5)} ${String(allowed).padStart(8)} ${String(differ.length).padStart(7)}`;
  console.log(`${name.padEnd(20)} ${taken!.padEnd(10)} ${(isTaken ? "ok" : "refused").padEnd(7)} ${counts}`);
  for (const line of differ.slice(0, 5)) console.log(`  ${line}`);
  if (!isTaken && taken === "ok") console.log(`  ${ours}`);
  if (!isSame) process.exitCode = 1;
}

/** Our form of a grammar, or the reason why it is refused. */
function grammarOf(text: string): OwnGrammar | string {
  try {
    return answerGrammar({ kind: "gbnf", text });
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns whether a text is a whole answer. */
async function allows(grammar: OwnGrammar, text: string): Promise<boolean> {
  const matcher = await byteCompiler.begin(grammar, text);
  const mask = await matcher?.mask();
  matcher?.dispose();
  return mask !== undefined && mayEnd(mask);
}

/** A text with one character changed, added or left out. */
function changed(text: string, rng: Rng): string {
  const chars = Array.from(text);
  const at = Math.floor(rng.float() * (chars.length + 1));
  const others = Array.from('ax0 "\\\n-]é中(');
  const other = others[Math.floor(rng.float() * others.length)]!;
  const way = Math.floor(rng.float() * 3);
  chars.splice(at, way === 0 ? 0 : 1, ...(way === 2 ? [] : [other]));
  return chars.join("");
}

function hexOf(text: string): string {
  return Buffer.from(text).toString("hex");
}

/** The program's answers, one per line. */
function llama(lines: readonly string[]): Promise<string[]> {
  return linesOf(source, { program: join(folder, "grammar-texts"), name: "grammar-texts", lines });
}
