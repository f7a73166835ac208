/**
 * The rules for documents: short paragraphs in plain English, lines that a diff can show, links that lead somewhere,
 * and names of files and folders that exist. Each check is a function from one document to complaints, and is tried on
 * texts that it must refuse and pass.
 */
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "bun:test";
import manifest from "../package.json";
import { phrasesIn } from "./plain-english.ts";

const ROOT = join(import.meta.dir, "..");
const MAX_WORDS = 120;
const MAX_COLUMNS = 100;
const MAX_ROW_COLUMNS = 240;

interface Document {
  /** From the repository's root, with `/`. */
  readonly path: string;
  readonly text: string;
}
type Check = (document: Document) => string[];

const files = [...new Bun.Glob("**/*").scanSync({ cwd: ROOT, dot: true })]
  .map((path) => path.replaceAll("\\", "/"))
  .filter((path) => !/(^|\/)(node_modules|\.git|dist)\//.test(path));
const documents: Document[] = await Promise.all(
  files
    .filter((path) => path.endsWith(".md"))
    .map(async (path) => ({ path, text: await Bun.file(join(ROOT, path)).text() })),
);

/** The text with blocks of code and comments blanked, so that line numbers stay. */
const prose = (text: string): string =>
  text.replace(/^( *)(```+)[\s\S]*?^\1\2$|<!--[\s\S]*?-->/gm, (code) => code.replace(/[^\n]/g, ""));
const isTable = (line: string): boolean => /^\s*\|/.test(line);
const lineAt = (text: string, index: number): number => text.slice(0, index).split("\n").length;

/** Paragraphs, items of lists and cells of tables, each with its first line and with single spaces. */
function* paragraphsOf(text: string): Generator<{ line: number; paragraph: string }> {
  let [line, paragraph] = [1, ""];
  for (const [i, row] of prose(text).split("\n").entries()) {
    const starts = /^\s*([-*>#|]|\d+\.)/.test(row) || row.trim() === "";
    if (starts) {
      yield { line, paragraph };
      [line, paragraph] = [i + 1, ""];
    }
    if (isTable(row)) for (const cell of row.split(/(?<!\\)\|/)) yield { line: i + 1, paragraph: cell.trim() };
    else paragraph = `${paragraph} ${row.trim()}`;
  }
  yield { line, paragraph };
}
const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

/** An image or package of Hearth in an example has the version of package.json. */
const versions: Check = ({ text }) =>
  [...text.matchAll(/\bhearth[:-](\d+\.\d+\.\d+)\b/g)]
    .filter(([, version]) => version !== manifest.version)
    .map(({ 0: name, index }) => `line ${lineAt(text, index)}: ${name}, expected version ${manifest.version}`);

const paragraphs: Check = ({ text }) =>
  [...paragraphsOf(text)]
    .map(({ line, paragraph }) => ({ line, words: wordsOf(paragraph) }))
    .filter(({ words }) => words > MAX_WORDS)
    .map(({ line, words }) => `line ${line}: a paragraph of ${words} words, at most ${MAX_WORDS}`);

/** The log is a notebook and stays as it was written. */
const plainEnglish: Check = ({ path, text }) =>
  path === "bench/LOG.md"
    ? []
    : [...paragraphsOf(text)].flatMap(({ line, paragraph }) =>
        phrasesIn(paragraph).map((what) => `line ${line}: ${what}`),
      );

/** Blocks of code keep their lines, and rows of tables up to a bound. A longer word or code has a line for itself. */
const columns: Check = ({ text }) =>
  prose(text)
    .split("\n")
    .flatMap((line, i) => {
      const length = [...line].length;
      if (isTable(line))
        return length > MAX_ROW_COLUMNS ? [`line ${i + 1}: a row of ${length} columns: make the table a list`] : [];
      const isOneWord = !/\S\s+\S/.test(line.replace(/^\s*([-*]|\d+\.)\s/, "").replace(/`[^`]*`/g, "`"));
      return length <= MAX_COLUMNS || isOneWord ? [] : [`line ${i + 1}: ${length} columns, at most ${MAX_COLUMNS}`];
    });

/** The name that a heading has in links. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .trim()
    .replaceAll(" ", "-");
const anchorsOf = (text: string): Set<string> =>
  new Set([...prose(text).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!)));

const exists = (path: string): boolean => {
  const plain = path.replace(/\/$/, "");
  return plain === "." || files.some((file) => file === plain || file.startsWith(`${plain}/`));
};

const links: Check = ({ path, text }) =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(({ 1: to = "", index }) => {
    if (/^(https?|mailto):/.test(to)) return [];
    const [file = "", anchor] = to.split("#");
    const target = file === "" ? path : normalize(join(dirname(path), file)).replaceAll("\\", "/");
    const complaint = `line ${lineAt(text, index)}: nothing is at ${to}`;
    if (!exists(target)) return [complaint];
    if (anchor === undefined) return [];
    const there = target === path ? text : documents.find((each) => each.path === target)?.text;
    return anchorsOf(there ?? "").has(anchor) ? [] : [complaint];
  });

/** Names of files that a reader makes, or that others have. */
const ELSEWHERE = new Set(["created.ts"]); // bench/LOG.md: deleted
const SOURCE = /^[\w.@/-]+\.(ts|tsx|wgsl|h|c|cpp|md|sh|py)$/;
const FOLDERS = /^(src|kernels|test|bench|docs|packaging|models|\.ci|\.github)\/[\w./@-]*$/;

/** A README of a folder names files of that folder; other documents may leave out where a file is. */
const paths: Check = ({ path, text }) =>
  [...prose(text).matchAll(/`([^`\n]+)`/g)].flatMap(({ 1: code = "", index }) => {
    const name = code.replace(/^\.\//, "").replace(/\/$/, "");
    if ((!SOURCE.test(name) && !FOLDERS.test(name)) || /\b(NAME|TYPE|CODE|FILE)\b/.test(name)) return [];
    const folder = path === "README.md" || !path.endsWith("/README.md") ? "" : `${dirname(path)}/`;
    const isThere = (file: string): boolean => file.startsWith(folder) && file.endsWith(`/${name}`);
    if (ELSEWHERE.has(name) || exists(name) || files.some(isThere)) return [];
    return [`line ${lineAt(text, index)}: there is no ${code}`];
  });

const metricsCode = await Promise.all(
  files.filter((path) => path.startsWith("src/server/metrics/")).map((path) => Bun.file(join(ROOT, path)).text()),
);

/** Names of metrics are in the code that serves them. */
const metrics: Check = ({ text }) =>
  [...prose(text).matchAll(/`((?:hearth_|vllm:)\w+)/g)]
    .filter(([, name]) => !metricsCode.some((code) => code.includes(`"${name}"`)))
    .map(({ 1: name, index }) => `line ${lineAt(text, index)}: no metric is named ${name}`);

interface Rule {
  readonly check: Check;
  readonly bad: readonly string[];
  readonly good: string;
}
const words = (count: number): string => `${"word ".repeat(10).trim()}\n`.repeat(count / 10);

const RULES: Readonly<Record<string, Rule>> = {
  paragraphs: {
    check: paragraphs,
    bad: [words(130), `- ${words(130)}`, `| ${words(130).replaceAll("\n", " ")} |`],
    good: `${words(120)}\n${words(120)}- ${words(120)}- ${words(120)}\n\`\`\`\n${words(130)}\`\`\`\n`,
  },
  "plain English": {
    check: plainEnglish,
    bad: ["Words that\nare none.", "| those of others |", "- whoever comes"],
    good: "Words that do not exist.\n\n```\nwhoever\n```\n",
  },
  columns: {
    check: columns,
    bad: ["a ".repeat(51).trim(), `| ${"a ".repeat(120)} |`],
    good: `${"a ".repeat(50)}\n${"a".repeat(200)}\n\`${"a ".repeat(99)}\`,\n| ${"a ".repeat(99)}|\n\`\`\`\n${"a ".repeat(99)}\n\`\`\``,
  },
  links: {
    check: links,
    bad: ["[a](docs/nothing.md)", "[a](README.md#nothing)", "[a](#nothing)"],
    good: "# One `two`\n\n[a](docs/slow.md#slow-to-start) [b](#one-two) [c](https://example.org/x) [d](src/engine)",
  },
  versions: {
    check: versions,
    bad: ["`hearth-0.1.9.tgz`", "```\ndocker push registry.internal/hearth:0.1.9\n```"],
    good: `\`hearth-${manifest.version}.tgz\`, registry.internal/hearth:${manifest.version}, Hearth 0.1.9`,
  },
  metrics: {
    check: metrics,
    bad: ["`hearth_requests_pending`", "| `vllm:requests{model_name}` |"],
    good: '`hearth_requests_waiting`, `hearth_model_events_total{event="hang"}`, `vllm:num_requests_running`',
  },
  paths: {
    check: paths,
    bad: ["`src/nothing/`", "`nothing.ts`", "`engine/nothing.ts`"],
    good: "`src/engine/`, `step.ts`, `program/step.ts`, `src/page/app/words/CODE.ts`, `a/b`, `bun x.ts`",
  },
};

describe.each(Object.entries(RULES))("%s:", (_, { check, bad, good }) => {
  test("the check refuses bad texts and passes a good one", () => {
    for (const text of bad) expect([text, check({ path: "README.md", text })]).not.toEqual([text, []]);
    expect(check({ path: "README.md", text: good })).toEqual([]);
  });

  test("every document follows the rule", () => {
    expect(documents.length).toBeGreaterThan(50);
    const complaints = documents.flatMap((each) => check(each).map((what) => `${each.path}: ${what}`));
    expect(complaints).toEqual([]);
  });
});

test("ARCHITECTURE.md has at most 1,500 words", async () => {
  expect(wordsOf(await Bun.file(join(ROOT, "ARCHITECTURE.md")).text())).toBeLessThanOrEqual(1500);
});

test("docs/performance.md has at most 60 lines", async () => {
  const page = await Bun.file(join(ROOT, "docs/performance.md")).text();
  expect(page.trim().split("\n").length).toBeLessThanOrEqual(60);
});

test("docs/libraries.md names every package in package.json", async () => {
  const page = await Bun.file(join(ROOT, "docs/libraries.md")).text();
  const { dependencies, devDependencies, optionalDependencies } = manifest;
  const names = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  const named = (name: string): boolean => page.includes(`\`${name}\``) || page.includes(`\`${dirname(name)}/*\``);
  expect(names.filter((name) => !name.includes("types") && !named(name))).toEqual([]);
});

test("CHANGELOG.md begins with the version of package.json", async () => {
  const text = await Bun.file(join(ROOT, "CHANGELOG.md")).text();
  expect(/^## (\S+) (\(unreleased\)|- \d{4}-\d\d-\d\d)$/m.exec(text)?.[1]).toBe(manifest.version);
});
