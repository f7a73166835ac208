#!/usr/bin/env bun
/**
 * Phrases that comments and texts may not use: fragments without a subject and a verb, and words that read as
 * translated. `plain-english.json` lists the files that still have some. Run this file to drop from the list what has
 * been mended: `bun test/plain-english.ts`.
 */
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
const LIST = join(import.meta.dir, "plain-english.json");

export interface Hit {
  readonly line: number;
  readonly phrase: string;
  /** What to write in its place. */
  readonly advice: string;
}

interface Passage {
  /** Offset of its first character in the file. */
  readonly at: number;
  readonly text: string;
}

const FRAGMENT = "start with a subject and a verb, or with a noun";

/** Refused in comments only: texts may ask questions. */
const FRAGMENTS: readonly (readonly [RegExp, string])[] = [
  [/(?:^|\. )(?:Of|What|Whether|Which|Who|Whose|Whom|How|Why|Those)\b(?![^.]*\?)[^.]{0,30}/g, FRAGMENT],
  [/^(?:of|what|whether|which|who|whose|whom|how|why|those)\b(?![^.]*\?)[^.]{0,30}/g, FRAGMENT],
  [/(?:^|\. )(?:Where|When)\b[^,.:;?]*(?:[.:;]|$)/g, FRAGMENT],
  [/\b(?:of|for|to|with|from|by|on|in|at|as|like|than|after|before) what\b/gi, "name the thing"],
  [/^(?:Most|Least) (?:bytes|characters|UTF-|tokens|time|values|open|concurrent)/g, "say 'maximum' or 'minimum'"],
];

const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\b(?:is|are|was|were) none\b/g, "say what is missing: 'there is no …', 'has no …'"],
  [/\bno numbers?\b/g, "NaN, or 'not a number'"],
  [/\bwho(?:m|so)?ever\b/gi, "name who"],
  [/\b(?:is|are|was|were|be|been|being) told\b/g, "use the active voice: who gets which message"],
  [/\bnobody\b/gi, "name the role: 'no caller', 'unused'"],
  [/\bthose (?:that|of|who|which|with|whose)\b/gi, "repeat the noun"],
  [/\bthere (?:is|are) not\b(?! enough)/g, "say 'does not exist'"],
  [/\b(?:has|have|had) (?:it|them|one|any) not\b/g, "say 'does not have'"],
  [/\b(?:stay|remain)s? so\b/g, "name the state: 'NaN stays NaN'"],
  [/\bgo(?:es)? on with\b/g, "say 'continues'"],
  [/\bso (?:many|few)\b(?![^.;:]* that\b)/gi, "name the number: 'this many', '`count`'"],
  [/\bwrit(?:e|es|ing|ten) down\b/g, "say 'record', 'report' or 'transcribe'"],
  [/\bfor people\b/gi, "name the role: 'user', 'operator', 'reader'"],
  [/\bone (?:behind|after) the other\b/g, "say 'in sequence' or 'consecutive'"],
  [/\bcomes? to no end\b/g, "say 'does not end'"],
  [/\b(?:process(?:es)?|sockets?|folders?|databases?) of (?:its|their) own\b/g, "say 'a separate …'"],
  [/\bbec(?:ame|omes?) of\b/g, "say 'the outcome of'"],
  [/\bjourneys?\b/gi, "say 'round trip' or 'request'"],
  [/(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer|more|less|better|worse|bigger)\w+/g, "say 'is not a …'"],
];

/** Comments without their marks; lines of `//` that follow each other are one. */
export function commentsOf(text: string): Passage[] {
  const comment = /(?<=^|[\s{(])\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*(?:\n[ \t]*\/\/.*)*/gm;
  return [...text.matchAll(comment)].map(({ 0: whole, index: at }) => {
    const bare = whole.replace(/^\/\*+|\*+\/$/g, "").replace(/^[ \t]*(?:\*|\/\/+)/gm, "");
    return { at, text: bare.replace(/\s+/g, " ").trim() };
  });
}

/** String literals of several words, outside of comments. */
function textsOf(text: string): Passage[] {
  const code = commentsOf(text).length === 0 ? text : text.replace(/(^|\s)\/\/.*$|^\s*\/\*[\s\S]*?\*\//gm, blank);
  const literals = code.matchAll(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g);
  return [...literals]
    .map(({ 0: literal, index: at }) => ({ at, text: literal }))
    .filter((each) => / /.test(each.text));
}

const blank = (comment: string): string => comment.replace(/[^\n]/g, " ");

/** The refused phrases of a file's comments and, in src/, of its texts. */
export function refusedPhrases(path: string, text: string): Hit[] {
  const find = (passages: readonly Passage[], patterns: typeof PHRASES): Hit[] =>
    passages.flatMap((passage) =>
      patterns.flatMap(([pattern, advice]) =>
        [...passage.text.matchAll(pattern)].map(({ 0: phrase }) => ({
          line: text.slice(0, passage.at).split("\n").length,
          phrase: phrase.replace(/^\. /, ""),
          advice,
        })),
      ),
    );
  const texts = path.startsWith("src/") ? textsOf(text) : [];
  return [...find(commentsOf(text), [...FRAGMENTS, ...PHRASES]), ...find(texts, PHRASES)];
}

/** The refused phrases of a paragraph, with their advice. */
export const phrasesIn = (paragraph: string): string[] =>
  PHRASES.flatMap(([pattern, advice]) =>
    [...paragraph.matchAll(pattern)].map(({ 0: phrase }) => `"${phrase}": ${advice}`),
  );

/** Repository files whose words count, by path. */
export async function wordedFiles(): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const folder of ["src", "kernels", "test", "bench", "packaging"]) {
    const glob = new Bun.Glob(`${folder}/**/*.{ts,tsx,wgsl,h,c}`);
    for (const path of [...glob.scanSync({ cwd: ROOT })].map((each) => each.replaceAll("\\", "/")))
      if (!/node_modules\/|\.d\.ts$|^test\/plain-english\.ts$/.test(path))
        files.set(path, await Bun.file(join(ROOT, path)).text());
  }
  return files;
}

/** How many refused phrases each listed file may still have. */
export async function listedCounts(): Promise<Record<string, number>> {
  return (await Bun.file(LIST).json()) as Record<string, number>;
}

/** Complaints about files that have more refused phrases than listed, or fewer. */
export function comparePhrases(found: ReadonlyMap<string, readonly Hit[]>, listed: Record<string, number>): string[] {
  const paths = [...new Set([...found.keys(), ...Object.keys(listed)])];
  return paths.flatMap((path) => {
    const [hits, allowed] = [found.get(path) ?? [], listed[path] ?? 0];
    if (hits.length < allowed) return [`${path}: ${hits.length} of ${allowed} left: run bun test/plain-english.ts`];
    if (hits.length === allowed) return [];
    const lines = hits.map(({ line, phrase, advice }) => `  line ${line}: "${phrase}": ${advice}`);
    return [[`${path}: ${hits.length} refused phrases, at most ${allowed}:`, ...lines].join("\n")];
  });
}

export async function findPhrases(): Promise<Map<string, Hit[]>> {
  const files = await wordedFiles();
  return new Map([...files].map(([path, text]) => [path, refusedPhrases(path, text)]));
}

/** Lowers the counts of the list to the hits found; never raises one. Reads both sides of a merge conflict. */
async function shrink(): Promise<void> {
  const listed = new Map<string, number>();
  for (const [, path, count] of (await Bun.file(LIST).text()).matchAll(/"([^"]+)": (\d+)/g))
    listed.set(path!, Math.max(listed.get(path!) ?? 0, Number(count)));
  const found = await findPhrases();
  const left = [...listed].map(([path, count]): [string, number] => [
    path,
    Math.min(count, found.get(path)?.length ?? 0),
  ]);
  const kept = left.filter(([, count]) => count > 0).toSorted(([a], [b]) => (a < b ? -1 : 1));
  await Bun.write(LIST, `${JSON.stringify(Object.fromEntries(kept), undefined, 2)}\n`);
}

if (import.meta.main) await shrink();
