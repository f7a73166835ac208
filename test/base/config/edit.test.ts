import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import JSON5 from "json5";
import { editJson5, type Edit } from "../../../src/base/config/edit.ts";

const set = (path: string, value: unknown): Edit => ({ kind: "set", path: path.split("."), value });
const append = (path: string, value: unknown): Edit => ({ kind: "append", path: path.split("."), value });
const remove = (path: string): Edit => ({ kind: "remove", path: path.split(".") });

test("an edit keeps comments, order and layout of the other lines", () => {
  const text = `// ours
{
  'gateway': { token: '\${TOKEN}' }, // secret
  hooks: {
    /* not yet */
    enabled: false, // on monday
    presets: ['github'],
    mappings: [
      { id: "a" }, // first
      { id: "b" } // last
    ],
    // the end
  }
}
`;
  const edited = editJson5(text, [
    set("hooks.enabled", true),
    append("hooks.presets", "mail"),
    append("hooks.mappings", { id: "c" }),
    set("hooks.mail", { host: "imap.example.org", user: "joe" }),
    set("session.mainKey", "x"),
  ]);
  expect(edited).toBe(`// ours
{
  'gateway': { token: '\${TOKEN}' }, // secret
  hooks: {
    /* not yet */
    enabled: true, // on monday
    presets: ['github', "mail"],
    mappings: [
      { id: "a" }, // first
      { id: "b" }, // last
      {
        id: "c",
      },
    ],
    mail: {
      host: "imap.example.org",
      user: "joe",
    },
    // the end
  },
  session: {
    mainKey: "x",
  },
}
`);
});

describe("an edit keeps the layout:", () => {
  test.each([
    ["{}", "{\n  a: 1,\n}"],
    ["{\n}\n", "{\n  a: 1,\n}\n"],
    ["{ // note\n}", "{\n  a: 1, // note\n}"],
    ["{ b: 2 }", "{ b: 2, a: 1 }"],
    ["{ b: 2, }", "{ b: 2, a: 1, }"],
    ["{\n\tb: 2\n}", "{\n\tb: 2,\n\ta: 1,\n}"],
    ["{\r\n  b: 2\r\n}", "{\r\n  b: 2,\r\n  a: 1,\r\n}"],
    ["{\n  b: 2 /* x */ , // y\n}", "{\n  b: 2 /* x */ , // y\n  a: 1,\n}"],
    ["{ a: 2, a: 3 }", "{ a: 2, a: 1 }"],
    ['{ "a": [1, 2] }', '{ "a": 1 }'],
  ])("%j", (before, after) => expect(editJson5(before, [set("a", 1)])).toBe(after));

  test.each([
    ["{\n  a: 1,\n  b: 2, // b\n  c: 3,\n}", "{\n  a: 1,\n  c: 3,\n}"],
    ["{ a: 1, b: 2 }", "{ a: 1,  }"],
    ["{ c: 1 }", "{ c: 1 }"],
  ])("without b: %j", (before, after) => expect(editJson5(before, [remove("b")])).toBe(after));
});

test("a path through a value that is no object, or an append to no list, is an error that names the path", () => {
  expect(() => editJson5("{ hooks: 1 }", [set("hooks.mail", {})])).toThrow("hooks: expected an object");
  expect(() => editJson5("{ a: { b: 1 } }", [append("a.b", 1)])).toThrow("a.b: expected a list");
  expect(() => editJson5("[]", [set("a", 1)])).toThrow("the configuration: expected an object");
});

const key = fc.constantFrom("a", "b", "c-d", "e f", "ä");
const values = [fc.integer(), fc.boolean(), fc.constant(null), fc.string({ maxLength: 8 }), fc.constant([1, "b"])];
const tree = fc.object({ key, values, maxDepth: 2, maxKeys: 4 });
const layout = fc.record({ space: fc.constantFrom(0, 2, "\t"), quote: fc.constantFrom('"', "'"), comment: fc.nat(5) });

test("an edit of any document sets the value, and keeps all other values and every comment", () =>
  fc.assert(
    fc.property(
      tree,
      layout,
      fc.array(key, { minLength: 1, maxLength: 3 }),
      fc.oneof(tree, fc.integer()),
      (document, { space, quote, comment }, path, value) => {
        let commas = 0;
        const plain = JSON5.stringify(document, { space, quote });
        // a comment after every sixth comma at the end of a line
        const text = plain.replace(/,$/gm, () => (commas++ % 6 === comment ? `, // note ${commas}` : ","));
        const wanted = structuredClone(document) as any;
        const parent = path.slice(0, -1).reduce((at: any, name) => {
          if (at === undefined) return undefined;
          if (!Object.hasOwn(at, name)) at[name] = {};
          const isObject = typeof at[name] === "object" && at[name] !== null && !Array.isArray(at[name]);
          return isObject ? at[name] : undefined;
        }, wanted);
        const edit: Edit = { kind: "set", path, value };
        if (parent === undefined) return void expect(() => editJson5(text, [edit])).toThrow("expected an object");
        const isReplaced = Object.hasOwn(parent, path.at(-1)!);
        parent[path.at(-1)!] = value;
        const edited = editJson5(text, [edit]);
        expect(JSON5.parse(edited)).toEqual(wanted);
        if (isReplaced) return;
        for (const note of text.match(/\/\/ note \d+/g) ?? []) expect(edited).toContain(note);
      },
    ),
    { numRuns: 500 },
  ));
