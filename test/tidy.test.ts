/**
 * House rules that a machine can check: layers, sizes, headers, and where the environment, Elysia and mutable state may
 * appear. Every check is a function from one file to complaints, tried first on a snippet that it must refuse.
 */
import { join, relative } from "node:path";
import { describe, expect, test } from "bun:test";
import { buildForBrowser } from "../src/page/engine/build.ts";
import {
  doors,
  DOORS,
  houseOf,
  HOUSES,
  importsOf,
  layers,
  roomCircles,
  ROOMS,
  withoutComments,
  type Check,
  type Source,
} from "./houses.ts";
import { circlesOf, unusedExports } from "./modules.ts";
import { comparePhrases, findPhrases, listedCounts, refusedPhrases } from "./plain-english.ts";

const ROOT = join(import.meta.dir, "..");
const MAX_FILE_LINES = 400; // lines of code
const MAX_FUNCTION_LINES = 70; // lines of code, including braces
const MAX_COLUMNS = 120;

/** Files that a check lets through, and why. An entry that nothing needs fails too. */
const EXCEPTIONS: readonly { readonly check: string; readonly path: string; readonly reason: string }[] = [
  { check: "environment", path: "src/main.ts", reason: "hands its environment to config.ts and to child processes" },
];

/** Exports of values that only tests import, although no other code uses them, and the reasons. */
const FOR_TESTS: Readonly<Record<string, string>> = {
  "src/page/bake.ts: bakePage": "for whoever compiles the program into one file",
  "src/engine/formats/gguf/parse.ts: parseGguf": "the parser over bytes that are all there, which the fuzzer feeds",
  "src/cli/update/minisign.ts: hashOf": "for the program that signs releases",
  "src/server/app.ts: makeApp": "the application without a listener",
  "kernels/simd/layout.ts: layoutHeader": "build.sh writes it",
};

const isProduct = (path: string): boolean => /^(src|kernels)\//.test(path);

const isCode = (line: string): boolean => line.trim() !== "";
const codeLines = (text: string): number => withoutComments(text).split("\n").filter(isCode).length;
const lineAt = (text: string, index: number): number => text.slice(0, index).split("\n").length;

/** Every place where a pattern occurs in the code of a file. */
function occurrences({ text }: Source, pattern: RegExp, complaint: string): string[] {
  const code = withoutComments(text);
  return [...code.matchAll(pattern)].map((match) => `line ${lineAt(code, match.index)}: ${complaint}`);
}

const fileSize: Check = ({ text }) => {
  const lines = codeLines(text);
  return lines > MAX_FILE_LINES ? [`${lines} lines of code, at most ${MAX_FILE_LINES}: split it by idea`] : [];
};

/**
 * Functions are found by the formatter's layout: an opener ends in `) {`, `): T {` or `=> {`, its end has the same
 * indent.
 */
const functionSize: Check = ({ text }) => {
  const lines = withoutComments(text).split("\n");
  return lines.flatMap((line, at) => {
    if (!/(\)(: .+)?|=>) \{$/.test(line) || /^\s*describe\b/.test(line)) return [];
    const indent = /^\s*/.exec(line)![0];
    const end = lines.findIndex((other, i) => i > at && other.startsWith(`${indent}}`));
    const size = lines.slice(at, end + 1).filter(isCode).length;
    return size > MAX_FUNCTION_LINES
      ? [`line ${at + 1}: ${size} lines of code in one function, at most ${MAX_FUNCTION_LINES}`]
      : [];
  });
};

/** Text in quotes is not counted, comments are: a message need not be split for its length. */
const columns: Check = ({ text }) => {
  const unquoted = text.replace(/`[^`]*`/g, (quoted) => quoted.replace(/[^\n]/g, "")).split("\n");
  return text.split("\n").flatMap((line, i) => {
    const code = unquoted[i]!.replace(/"[^"]*"|'[^']*'/g, '""');
    const columns = /^\s*(\/?\*|\/\/)/.test(line) ? line.length : Math.min(line.length, code.length);
    return columns > MAX_COLUMNS ? [`line ${i + 1}: ${columns} columns, at most ${MAX_COLUMNS}`] : [];
  });
};

const header: Check = ({ text }) =>
  /^(#!.*\n)?\/\*\*\s/.test(text)
    ? []
    : ["does not open with a /** header */ that says what it is and where it comes from"];

const MARKERS = new RegExp(["TO", "DO|FIX", "ME|X", "XX"].join(""), "g"); // split so that this file passes
const markers: Check = ({ text }) =>
  [...text.matchAll(MARKERS)].map(
    ({ 0: word, index }) => `line ${lineAt(text, index)}: ${word}: do it, or open an issue`,
  );

const environment: Check = (source) =>
  source.path === "src/base/config/config.ts"
    ? []
    : occurrences(
        source,
        /\b(process|Bun|import\.meta)\.env\b/g,
        "reads the environment; only config.ts does, others get values",
      );

/** The core, which also runs in pages: the host is injected. */
const PORTABLE =
  /^src\/engine\/(index|portable)\.ts$|^(src\/engine\/(formats\/(quant|gguf)|text|program|backends|architectures|batching|runner)|src\/page\/engine|kernels\/wgsl)\//;
/** Files of the core that adapt a host. */
const HOSTS =
  /^src\/(engine\/(backends\/(host|onnx)\/|backends\/(index|registry|device-probe)\.ts|runner\/process\.ts)|page\/engine\/build\.ts)/;

const portable: Check = (source) => [
  ...importsOf(source).flatMap(({ from }) =>
    /^(bun|node)(:|$)/.test(from) || HOSTS.test(from) ? [`imports ${from}: what runs in pages has no host`] : [],
  ),
  ...occurrences(source, /(?<![.\w])(Bun|Buffer|process)\b(?=\s*[.[(?])/g, "uses what pages do not have"),
];

const elysia: Check = (source) =>
  source.path.startsWith("src/server/")
    ? []
    : importsOf(source).flatMap(({ from }) => (/elysia/.test(from) ? [`imports ${from}; only src/server does`] : []));

/** The command line, whose text reaches terminals, and its output module. */
const COMMAND_LINE = /^src\/cli\//;
const TERMINAL = /^src\/cli\/terminal\/(terminal|drawing)\.ts$/;

const terminal: Check = (source) => [
  ...occurrences(
    source,
    /\bconsole\.\w+\(|\b(stdout|stderr|output|errors)\.write\(/g,
    "writes past Terminal, which makes text of others plain",
  ),
  ...occurrences(source, /\\x1b|\\u001b|\bas Drawing\b/g, "makes sequences for terminals; only drawing.ts does"),
];

const moduleState: Check = (source) => [
  ...occurrences(source, /^(export )?(let|var) /gm, "a variable of the module; make it local to what main builds"),
  ...occurrences(
    source,
    /^(export )?const \w+(: [^=]+)? = (new (Weak)?(Map|Set)(<.*>)?\(\)|\[\]);/gm,
    "a container of the module that starts empty is state",
  ),
];

/** A kernel's header names its bindings, its workgroups and its reference; a snippet's header its purpose. */
const kernelHeader: Check = ({ path, text }) => {
  const name = path.split("/").at(-1)!.replace(".wgsl", "");
  const comment = /^(\/\/.*\n)*/.exec(text)![0];
  const complaints = comment.startsWith(`// ${name}: `) ? [] : [`does not open with '// ${name}: ' and what it does`];
  if (!text.includes("@compute")) return complaints;
  const bound = [...text.matchAll(/@binding\((\d+)\) var<(?:storage, )?(\w+)> (\w+)/g)];
  for (const [, binding, access, what] of bound) {
    const kind = access === "uniform" ? `uniform +${what === "p" ? "Params" : "see "}` : `storage, ${access} `;
    if (!new RegExp(`^//   binding ${binding}  ${what} +${kind}`, "m").test(comment))
      complaints.push(`the header has no line 'binding ${binding}  ${what}  ${kind}'`);
  }
  for (const word of ["dispatch", "oracle"])
    if (!new RegExp(`^//   ${word} +\\S`, "m").test(comment)) complaints.push(`the header does not tell its ${word}`);
  if (!/tolerance \d/.test(comment)) complaints.push("the header does not tell its tolerance");
  return complaints;
};

interface Rule {
  readonly check: Check;
  readonly applies: (path: string) => boolean;
  /** A file that must be refused, and one that must pass. */
  readonly bad: Source;
  readonly good: Source;
}
const anywhere = (): boolean => true;
const at = (path: string, text: string): Source => ({ path, text });

const RULES: Readonly<Record<string, Rule>> = {
  layers: {
    check: layers,
    applies: isProduct,
    bad: at("src/engine/a.ts", 'import type { A } from "../library/a.ts";'),
    good: at(
      "src/engine/vision/a.ts",
      'import type { A } from "../text/a.ts";\nexport { b } from "./b.ts";\nimport "elsewhere";',
    ),
  },
  doors: {
    check: doors,
    applies: isProduct,
    bad: at("src/server/a.ts", 'const { a } = await import("../runtime/pool.ts");'),
    good: at(
      "src/server/a.ts",
      'import { a } from "../base/config/index.ts";\nimport { b } from "./http/b.ts";\nimport c from "../../kernels/c.ts";',
    ),
  },
  "file size": {
    check: fileSize,
    applies: anywhere,
    bad: at("src/a.ts", "a();\n".repeat(401)),
    good: at("src/a.ts", `${"a();\n".repeat(400)}\n\n// why\n/**\n * what\n */\n`),
  },
  "function size": {
    check: functionSize,
    applies: anywhere,
    bad: at("src/a.ts", `  const f = async (): Promise<void> => {\n${"    a();\n".repeat(69)}  };\n`),
    good: at(
      "src/a.ts",
      `function f(): void {\n${"  a();\n".repeat(68)}\n  // text\n}\nfunction g() {\n${"  a();\n".repeat(60)}}\n`,
    ),
  },
  columns: {
    check: columns,
    applies: anywhere,
    bad: at("src/a.ts", `a${" ".repeat(120)}`),
    good: at("src/a.ts", `a${" ".repeat(119)}\nb`),
  },
  header: {
    check: header,
    applies: (path) => /\.tsx?$/.test(path) && !path.endsWith(".test.ts"),
    bad: at("src/a.ts", "// a file\n"),
    good: at("src/a.ts", "#!/usr/bin/env bun\n/**\n * A file.\n */\n"),
  },
  markers: {
    check: markers,
    applies: anywhere,
    bad: at("src/a.ts", `a(); // ${"TO"}${"DO"}: b`),
    good: at("src/a.ts", "a(); // because"),
  },
  environment: {
    check: environment,
    applies: (path) => path.startsWith("src/") || path.startsWith("kernels/"),
    bad: at("src/server/a.ts", 'const a = process.env["A"];'),
    good: at("src/server/a.ts", 'const a = config.a; // not process.env["A"]'),
  },
  portable: {
    check: portable,
    applies: (path) => PORTABLE.test(path) && !HOSTS.test(path),
    bad: at("src/engine/batching/a.ts", 'import { open } from "node:fs";'),
    good: at(
      "src/engine/batching/a.ts",
      'import type { A } from "../program/a.ts";\nconst process = 1; // not Bun.nanoseconds()',
    ),
  },
  terminal: {
    check: terminal,
    applies: (path) => COMMAND_LINE.test(path) && !TERMINAL.test(path),
    bad: at("src/cli/a.ts", "console.log(answer);"),
    good: at("src/cli/a.ts", "terminal.write(answer);"),
  },
  elysia: {
    check: elysia,
    applies: isProduct,
    bad: at("src/runtime/a.ts", 'import { t } from "elysia";'),
    good: at("src/server/a.ts", 'import { t } from "elysia";'),
  },
  "kernel header": {
    check: kernelHeader,
    applies: (path) => path.endsWith(".wgsl"),
    bad: at("kernels/wgsl/a.wgsl", "// b: something else\n"),
    good: at(
      "kernels/wgsl/a.wgsl",
      "// a: y = 1.\n//\n//   binding 0  y  storage, read_write  f32 (rows)\n//   dispatch   (1, 1, 1)\n" +
        "//   oracle     cpu; tolerance 0\n@binding(0) var<storage, read_write> y: array<f32>;\n@compute\n",
    ),
  },
  "module state": {
    check: moduleState,
    applies: isProduct,
    bad: at("src/base/a.ts", "export let count = 0;"),
    good: at("src/base/a.ts", "export const LIMIT = 1;\nfunction f() {\n  let n = 0;\n}\n"),
  },
};

const refused: Readonly<Record<string, readonly Source[]>> = {
  doors: [
    at("src/main.ts", 'import { a } from "./cli/a.ts";'),
    at("src/server/a.ts", 'import type { A } from "../base/errors.ts";'),
    at("kernels/wgsl/a.ts", 'import type { A } from "../../src/base/errors.ts";'),
  ],
  "kernel header": [
    at("kernels/wgsl/a.wgsl", "// a: y = 1.\n@binding(0) var<storage, read_write> y: array<f32>;\n@compute\n"),
    at("kernels/wgsl/a.wgsl", "// a: y = 1.\n//   dispatch   (1, 1, 1)\n//   oracle     cpu\n@compute\n"),
  ],
  layers: [
    at("src/engine/formats/a.ts", 'export {\n  a,\n} from "../batching/a.ts";'),
    at("src/engine/program/a.ts", 'import type { A } from "../backends/a.ts";'),
    at("src/base/a.ts", 'const a = await import("../library/a.ts");'),
    at("src/misc/a.ts", 'import { a } from "../base/a.ts";'),
    at("src/server/a.ts", 'import { a } from "../../test/a.ts";'),
    at("src/engine/a.ts", 'import { a } from "../../kernels/onnx/a.ts";'),
    at("kernels/onnx/a.ts", 'import { a } from "../../src/engine/backends/cpu.ts";'),
    at("kernels/onnx/a.ts", 'import type { A } from "../../src/runtime/a.ts";'),
  ],
  "module state": [
    at("src/base/a.ts", "const cache = new Map<string, number>();"),
    at("src/base/a.ts", "const all: string[] = [];"),
  ],
  environment: [at("src/base/a.ts", "const a = Bun.env.A;")],
  terminal: [
    at("src/cli/a.ts", "process.stderr.write(answer);"),
    at("src/cli/a.ts", "terminal.output.write(answer);"),
    at("src/cli/a.ts", 'terminal.write("\\x1b[K");'),
    at("src/cli/a.ts", "terminal.draw(answer as Drawing);"),
  ],
  portable: [
    at("src/engine/formats/gguf/a.ts", "const a = Buffer.from(b);"),
    at("src/engine/formats/gguf/a.ts", "if (process.platform) b();"),
    at("src/engine/formats/gguf/a.ts", 'const { dlopen } = await import("bun:ffi");'),
    at("src/engine/runner/a.ts", 'import { backends } from "../backends/index.ts";'),
  ],
};

const sources: Source[] = [];
for (const folder of ["src", "kernels", "test", "bench"]) {
  const glob = new Bun.Glob(`${folder}/**/*.{ts,tsx,wgsl}`);
  for (const path of glob.scanSync({ cwd: ROOT })) {
    if (!path.includes("node_modules/") && !path.endsWith(".d.ts"))
      sources.push(at(path, await Bun.file(join(ROOT, path)).text()));
  }
}

describe.each(Object.entries(RULES))("%s:", (name, rule) => {
  test("the check refuses a bad text and passes a good one", () => {
    for (const bad of [rule.bad, ...(refused[name] ?? [])])
      expect([bad.text, rule.check(bad)]).not.toEqual([bad.text, []]);
    expect(rule.check(rule.good)).toEqual([]);
  });

  test("every file follows the rule", () => {
    const excused = new Set(EXCEPTIONS.filter((each) => each.check === name).map((each) => each.path));
    const wrong = sources
      .filter((source) => rule.applies(source.path))
      .map((source) => [source.path, rule.check(source)] as const);
    const complaints = wrong.flatMap(([path, found]) =>
      excused.has(path) ? [] : found.map((what) => `${path}: ${what}`),
    );
    expect(complaints).toEqual([]);
    const needed = wrong.filter(([, found]) => found.length > 0).map(([path]) => path);
    expect([...excused].filter((path) => !needed.includes(path))).toEqual([]); // an exception that nothing needs
  });
});

describe("modules:", () => {
  const modules = sources
    .filter(({ path }) => /\.tsx?$/.test(path))
    .map(({ path, text }) => ({ path, code: withoutComments(text) }));
  const module = (path: string, code: string) => ({ path, code });

  test("no module imports itself through others, types included", () => {
    const [a, b] = [
      module("src/a.ts", 'import type { B } from "./b.ts";'),
      module("src/b.ts", 'export * from "./a.ts";'),
    ];
    expect(circlesOf([a, b])).toEqual([["src/a.ts", "src/b.ts"]]);
    expect(circlesOf([a, module("src/b.ts", 'new URL("./a.ts", import.meta.url);')])).toEqual([]);
    expect(circlesOf(modules)).toEqual([]);
  });

  test("no module exports an unused name", () => {
    const a = module(
      "src/a.ts",
      "export const one = 1;\nexport function two() {\n  return one;\n}\nexport type Three = 3;\n",
    );
    const test = module("test/a.ts", 'import { one, two } from "../src/a.ts";');
    const b = module("src/b.ts", 'import { type Three, two as second } from "./a.ts";');
    expect(unusedExports([a])).toEqual(["src/a.ts: one", "src/a.ts: two", "src/a.ts: Three"]);
    expect(unusedExports([a, test])).toEqual(["src/a.ts: two", "src/a.ts: Three"]);
    expect(unusedExports([a, test, b])).toEqual([]);
    expect(unusedExports(modules).toSorted()).toEqual(Object.keys(FOR_TESTS).toSorted());
  });
});

describe("plain English:", () => {
  const hits = (text: string) => refusedPhrases("src/a.ts", text).map(({ phrase }) => phrase);

  test("refuses fragments and translated phrases, in comments and texts", () => {
    expect(hits("/** Of a model: its name. */\n/** Names.\n * What they mean. */\n")).toEqual([
      "Of a model: its name",
      "What they mean",
    ]);
    expect(
      hits("// whether it is\na();\n// Where it lies.\na();\n// Where it lies, it stays. What is it?"),
    ).toHaveLength(2);
    expect(hits('throw new Error("that is no file");\nconst a = `${b} is told`;\n')).toEqual(["is no file", "is told"]);
    expect(hits("// Why; so many for people\na();\n// so few that all fit\n")).toHaveLength(3);
    expect(hits('const a = "What there is";\n// There is no file: NaN stays NaN.\n')).toEqual([]);
    expect(refusedPhrases("test/a.ts", 'test("whoever", f);\n// is none')).toHaveLength(1);
  });

  test("the list of excused phrases equals the phrases that are left", async () => {
    const hit = { line: 1, phrase: "is none", advice: "say it" };
    expect(comparePhrases(new Map([["a.ts", [hit]]]), {})).toHaveLength(1);
    expect(comparePhrases(new Map([["a.ts", [hit]]]), { "a.ts": 2, "b.ts": 1 })).toHaveLength(2);
    expect(comparePhrases(await findPhrases(), await listedCounts())).toEqual([]);
  });
});

test("doors: every listed door exists, and no house has more than its limit", () => {
  const paths = new Set(sources.map(({ path }) => path));
  const all = Object.entries(DOORS).flatMap(([house, names]) => names.map((name) => `src/${house}/${name}.ts`));
  expect(all.filter((path) => !paths.has(path))).toEqual([]);
  for (const [house, names] of Object.entries(DOORS))
    expect(names.length).toBeLessThanOrEqual(house === "engine" ? 8 : 6);
});

test("layers: no rooms of a house import each other", () => {
  expect(roomCircles(sources)).toEqual([]);
  const [a, b] = [at("src/cli/a/a.ts", 'import "../b/b.ts";'), at("src/cli/b/b.ts", 'import "../a/a.ts";')];
  expect(roomCircles([a, b])).toEqual(["src/cli/a", "src/cli/b"]);
});

test("layers: every listed house and room exists", () => {
  const paths = sources.map(({ path }) => path);
  expect(HOUSES.filter((house) => !paths.some((path) => houseOf(path) === house))).toEqual([]);
  const rooms = Object.entries(ROOMS).flatMap(([house, names]) => names.map((name) => `src/${house}/${name}/`));
  expect(rooms.filter((room) => !paths.some((path) => path.startsWith(room)))).toEqual([]);
});

test("portable: the core bundles for a page, and no bundled module needs a host", async () => {
  const builds = await Promise.all([buildForBrowser(), buildForBrowser(join(ROOT, "src/page/engine/index.ts"))]);
  const bundled = [...new Set(builds.flatMap((build) => build.sources))];
  const ours = bundled.map((path) => relative(ROOT, path).replaceAll("\\", "/")).filter(isProduct);
  expect(ours.length).toBeGreaterThan(100);
  const wrong = sources.filter(({ path }) => ours.includes(path)).flatMap((source) => portable(source));
  expect(wrong).toEqual([]);
  const entry = join(ROOT, "src/gateway/database/database.ts"); // an import that must be refused
  await expect(buildForBrowser(entry)).rejects.toThrow(/database\.ts imports bun:sqlite/);
});
