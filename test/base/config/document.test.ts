import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { readDocument } from "../../../src/base/config/document.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-document-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const read = (text: string, env: Record<string, string> = {}) => readDocument(write("main.json5", text), env);

describe("places", () => {
  const text = `// hello: { not: 'here' }
{
  hooks: { enabled: true, /* x: 1,
    y: 2 */ 'token': "a,b:{",
    mappings: [
      { id: "one" }, {
        id: 'two', "match": { path: "a" } },
      [ 1, [2,
        3 ] ],
    ],
  },
  port: 3 }
`;

  test.each([
    [["hooks"], 3],
    [["hooks", "token"], 4],
    [["hooks", "mappings"], 5],
    [["hooks", "mappings", 0, "id"], 6],
    [["hooks", "mappings", 1], 6],
    [["hooks", "mappings", 1, "match", "path"], 7],
    [["hooks", "mappings", 2, 1, 1], 9],
    [["port"], 12],
    [["hooks", "nothing", "there"], 3],
    [["hooks", "mappings", 9], 5],
  ] as [(string | number)[], number][])("%j is on line %d", (path, line) => {
    expect(read(text).where(path)).toBe(`${join(folder, "main.json5")}:${line}`);
  });

  test("a value has the line of its key", () => {
    const name = fc.stringMatching(/^[a-z"'\\{}[\],: ]{1,6}$/);
    const tree = fc.letrec((tie) => ({
      any: fc.oneof({ depthSize: "small" }, name, fc.integer(), fc.boolean(), tie("list"), tie("object")),
      list: fc.array(tie("any"), { maxLength: 4 }),
      object: fc.dictionary(name, tie("any"), { maxKeys: 4 }),
    })).object;
    fc.assert(
      fc.property(tree, (value) => {
        const printed = JSON.stringify(value, null, 2);
        const document = read(printed);
        const lines = printed.split("\n");
        for (const key of Object.keys(value as object)) {
          if (key === "__proto__") continue;
          const line = Number(document.where([key]).split(":").at(-1));
          expect(lines[line - 1]?.startsWith(`  ${JSON.stringify(key)}:`)).toBe(true);
        }
      }),
    );
  });
});

describe("includes", () => {
  test("merge objects, join lists, and are overridden by the keys beside them", () => {
    write("base.json5", "{ a: { x: 1, y: 2 }, list: [1], z: 'base' }");
    write("more/extra.json5", "{ a: { y: 3 }, list: [2], w: 4 }");
    const document = read("{ $include: ['base.json5', './more/extra.json5'], a: { x: 9 }, list: [3], z: 'own' }");
    expect(document.root).toEqual({ a: { x: 9, y: 3 }, list: [1, 2, 3], z: "own", w: 4 });
    expect(document.files.map((file) => file.slice(folder.length + 1))).toEqual([
      "main.json5",
      "base.json5",
      join("more", "extra.json5"),
    ]);
    expect(document.where(["a", "y"])).toBe(`${join(folder, "more/extra.json5")}:1`);
  });

  test("are resolved at any level, relative to the file that names them", () => {
    write("sub/one.json5", "{ deep: { $include: './two.json5' } }");
    write("sub/two.json5", "[1, 2]");
    expect(read("{ a: [{ $include: 'sub/one.json5' }] }").root).toEqual({ a: [{ deep: [1, 2] }] });
  });

  test.each([
    ["{ a: 1,\n $include: 'missing.json5' }", ":2: $include: cannot read 'missing.json5': ENOENT"],
    ["{ $include: 'main.json5' }", "'main.json5' includes itself"],
    ["{ $include: '/etc/passwd' }", "'/etc/passwd' is outside the folder of the configuration"],
    ["{ $include: '../x.json5' }", "$include: "],
    ["{ $include: 7 }", "$include: expected the path of a file"],
    ["{ a: { $include: 'list.json5', b: 1 } }", "$include: expected an object, because there are other keys"],
    ["{ $include: 'broken.json5' }", "broken.json5: not JSON5: invalid"],
  ])("%j is refused", (text, message) => {
    write("list.json5", "[1]");
    write("broken.json5", "{ a: ");
    expect(() => read(text)).toThrow(message);
  });

  test("through a link that leads out of the folder are refused", () => {
    symlinkSync("/etc/hostname", join(folder, "link.json5"));
    expect(() => read("{ $include: 'link.json5' }")).toThrow("outside the folder");
  });

  test("are bounded in depth, number and size", () => {
    for (let i = 0; i < 12; i++) write(`d${i}.json5`, `{ $include: 'd${i + 1}.json5' }`);
    write("d12.json5", "{}");
    expect(() => read("{ $include: 'd0.json5' }")).toThrow("expected at most 10 files inside each other");
    write("leaf.json5", "{}");
    expect(() => read(`{ $include: [${"'leaf.json5',".repeat(70)}] }`)).toThrow("expected at most 64 files");
    expect(() => read(`{ a: '${"x".repeat(1 << 20)}' }`)).toThrow("expected at most 1048576 bytes");
    expect(() => read(`{ a: ${"[".repeat(80)}${"]".repeat(80)} }`)).toThrow("expected at most 64 levels");
  });
});

describe("environment variables", () => {
  test("are replaced in any text; two dollars keep one; other spellings are text", () => {
    const text = "{ a: 'x${ONE}y${TWO_2}', b: ['$${ONE}', '${one}', '$ONE', '${1A}'], c: 1 }";
    expect(read(text, { ONE: "1", TWO_2: "2" }).root).toEqual({
      a: "x1y2",
      b: ["${ONE}", "${one}", "$ONE", "${1A}"],
      c: 1,
    });
  });

  test.each([[{}], [{ TOKEN: "" }]])("that are not set are an error that names them and their key: %j", (env) => {
    expect(() => read("{ hooks: {\n mappings: [{ token: '${TOKEN}' }] } }", env as Record<string, string>)).toThrow(
      `${join(folder, "main.json5")}:2: hooks.mappings[0].token: the environment variable TOKEN is not set`,
    );
  });

  test("are not replaced again inside a replaced value", () => {
    expect(read("{ a: '${A}' }", { A: "${B}" }).root).toEqual({ a: "${B}" });
  });
});

test("the key `__proto__` is refused", () => {
  expect(() => read("{ a: { __proto__: { b: 1 } } }")).toThrow("no such key");
});

test("any file is read or refused with an error of code bad_request", () => {
  const pieces = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "a",
    "'b'",
    '"',
    "1",
    "/*",
    "*/",
    "//",
    "\n",
    "$include",
    "${X}",
    "\\",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
      try {
        read(parts.join(""));
      } catch (error) {
        expect(error).toMatchObject({ name: "AppError", code: "bad_request" });
      }
    }),
    { numRuns: 500 },
  );
});

test("`__proto__` is named with its line", () => {
  const file = join(folder, "proto.json5");
  writeFileSync(file, '{ hooks: {\n  path: "/x",\n  "__proto__": { enabled: true } } }');
  expect(() => readDocument(file, {})).toThrow(`${file}:3: hooks.__proto__: no such key`);
});
