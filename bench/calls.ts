/**
 * Do the calls of random models hold? For every format of docs/models.md's `tools` column: a random model opens calls
 * with nested schemas, alone and in parallel, or must make one, named or required. Every finished call is parsed in
 * pieces, judged by Ajv, printed by templates of the format and parsed again.
 *
 *   bun bench/calls.ts [--count 300] [--from 0] [--formats hermes,glm] [--templates FOLDER]
 *
 * `--from` continues after another run. `--templates` adds a folder of Jinja templates, such as llama.cpp's
 * `models/templates`. An answer that does not end within its tokens counts as cut.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makeRng } from "../src/engine/text/rng.ts";
import { RENDERERS } from "../src/engine/text/template/named.ts";
import { choosePrompt, type PromptTemplate } from "../src/engine/text/template/prompt.ts";
import { detectToolFormat, toolFormats, type ToolFormatName } from "../src/runtime/parse/index.ts";
import { callIn, CALL_MODES, makeCaller } from "../test/runtime/parse/call-runs.ts";
import { awkwardTools } from "../test/runtime/parse/call-tools.ts";
import { hasMarks, reprinted } from "../test/runtime/parse/reprinted.ts";

/** Templates that lose something. */
const EXPLAINED: readonly (readonly [file: RegExp, why: string])[] = [
  [/^lfm2|^LFM2/, "prints texts with apostrophes as they are"],
  [/^olmo3.*-think$/, "prints no calls"],
  [/^olmo3/, "prints names with blanks, which Python does not have"],
  [/^MiniMax-M3/, "leaves out null, and prints empty lists and texts alike"],
  [/Seed-OSS/, "prints line breaks at the end of a text, which its format does not keep"],
];
const SERIES = 20; // calls with the same tools
const { values: flags } = parseArgs({
  options: {
    count: { type: "string", default: "300" },
    from: { type: "string", default: "0" },
    formats: { type: "string" },
    templates: { type: "string" },
  },
});
const all = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal
const wanted = flags.formats?.split(",");
const templates = templatesIn(flags.templates);

console.log("format         calls   cut  faults  templates  seconds");
for (const name of all.filter((each) => wanted?.includes(each) ?? true)) await check(name);

async function check(name: ToolFormatName): Promise<void> {
  const own = templates.get(name) ?? [];
  const startedMs = performance.now();
  const faults: string[] = [];
  const [from, count] = [Number(flags.from), Number(flags.count)];
  const changed = new Map<string, string[]>(); // by template
  let [done, cut] = [0, 0];
  for (let series = Math.floor(from / SERIES); done < count; series++) {
    const tools = awkwardTools(series);
    const caller = makeCaller(name, tools, series % 2 === 1);
    try {
      for (let i = 0; i < SERIES && done < count; i++) {
        const seed = series * SERIES + i;
        const mode = CALL_MODES[i % CALL_MODES.length]!;
        const found = await callIn(caller, { mode, seed, pieces: makeRng(seed) });
        if (found.kind === "cut") {
          cut++;
          if (cut > count * 10) throw new Error(`${name}: almost all answers are cut`);
          continue;
        }
        done++;
        if (found.kind === "fault") faults.push(`${mode}, seed ${seed}: ${found.why}`);
        else if (!hasMarks(name, found.calls)) {
          for (const { file, template } of own) {
            const lost = reprinted(name, template, { tools, calls: found.calls });
            if (lost !== undefined) changed.set(file, [...(changed.get(file) ?? []), `${mode}, seed ${seed}: ${lost}`]);
          }
        }
      }
    } finally {
      caller.dispose();
    }
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const cells = [done, cut, faults.length, own.length, seconds.toFixed(1)];
  console.log(`${name.padEnd(13)} ${cells.map((cell, i) => String(cell).padStart([6, 5, 7, 10, 8][i]!)).join(" ")}`);
  for (const fault of faults.slice(0, 20)) console.log(`  ${fault.slice(0, 600)}`);
  const reasonFor = (file: string): string | undefined => EXPLAINED.find(([pattern]) => pattern.test(file))?.[1];
  for (const [file, each] of changed) {
    // At least one entry
    console.log(`  ${file}: ${each.length} changed: ${reasonFor(file) ?? each[0]!.slice(0, 900)}`);
  }
  if (faults.length > 0 || [...changed.keys()].some((file) => reasonFor(file) === undefined)) process.exitCode = 1;
}

/** Templates by the format of calls that they teach: our own, and those in a folder. */
function templatesIn(folder: string | undefined): Map<ToolFormatName, { file: string; template: PromptTemplate }[]> {
  const found = new Map<ToolFormatName, { file: string; template: PromptTemplate }[]>();
  const add = (file: string, template: PromptTemplate): void => {
    if (!template.source.includes("tool_calls")) return;
    const name = detectToolFormat(template.source);
    found.set(name, [...(found.get(name) ?? []), { file, template }]);
  };
  for (const renderer of RENDERERS) add(renderer, choosePrompt({ renderer }));
  const files = folder === undefined ? [] : readdirSync(folder).filter((file) => file.endsWith(".jinja"));
  // The list has files
  for (const file of files) add(file, choosePrompt({ jinja: readFileSync(join(folder!, file), "utf8") }));
  return found;
}
