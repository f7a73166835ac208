import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../src/base/errors.ts";
import {
  decodeModelfile,
  parseModelfile,
  printModelfile,
  type Modelfile,
} from "../../../src/library/store/modelfile.ts";
import { cpuMs } from "../../cpu-time.ts";

const EMPTY: Modelfile = { from: ["m"], adapters: [], drafts: [], parameters: {}, messages: [], licenses: [] };

test("reads every command", () => {
  const text = `
# a comment
FROM ./model.gguf
  from ./projector.gguf
PARAMETER temperature 0.7
PARAMETER stop <|end|>
PARAMETER stop "two words "
PARAMETER num_ctx 2048
parameter use_mmap false
TEMPLATE """{{ .Prompt }}
# not a comment
"""
SYSTEM first
SYSTEM Be brief. # literal
ADAPTER a.gguf
RENDERER r
PARSER p
REQUIRES 0.14.0
LICENSE one
LICENSE """two
lines"""
MESSAGE user Hi
MESSAGE assistant "Hello
there"
`;
  expect(parseModelfile(text)).toEqual({
    from: ["./model.gguf", "./projector.gguf"],
    adapters: ["a.gguf"],
    drafts: [],
    template: "{{ .Prompt }}\n# not a comment\n",
    system: "Be brief. # literal",
    renderer: "r",
    parser: "p",
    requires: "0.14.0",
    parameters: { temperature: 0.7, stop: ["<|end|>", "two words "], num_ctx: 2048, use_mmap: false },
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello\nthere" },
    ],
    licenses: ["one", "two\nlines"],
  });
});

describe("quotes", () => {
  test.each([
    ['SYSTEM "a "b" c"', 'a "b" c'],
    ["SYSTEM 'a'", "'a'"],
    ['SYSTEM say "hi"', 'say "hi"'],
    ['SYSTEM "a" b\nc"', 'a" b\nc'],
    ['SYSTEM ""', ""],
    ['SYSTEM """"""', ""],
    ['SYSTEM """a""" ', "a"],
    ["SYSTEM tab\there\u00a0\u200d", "tab\there\u00a0\u200d"],
    ["SYSTEM bell\x07", "bell"],
    ['SYSTEM "x\r\ny\rz"', "x\r\ny\rz"], // as Ollama has it
    ["SYSTEM x\r\n", "x"],
    ['json system "a\\"\\"\\"\\nb\\u0000"', 'a"""\nb\0'],
    ['SYSTEM json "a"', 'json "a"'],
  ])("%p", (line, system) => expect(parseModelfile(`FROM m\n${line}\n`).system).toBe(system));
});

describe("errors name the line", () => {
  const commands =
    '"from", "license", "template", "system", "adapter", "draft", "renderer", "parser", "parameter", "message", or "requires"';
  test.each([
    ["", "no FROM line"],
    ["# only a comment", "no FROM line"],
    ["FROM m\n\nFORM x", `(line 3): command must be one of ${commands}, got 'FORM'`],
    ["FROM=m", `(line 1): command must be one of ${commands}, got 'FROM=m'`],
    ["FROM m\nMESSAGE User hi", '(line 2): message role must be one of "system", "user", or "assistant"'],
    ["FROM m\nPARAMETER a-b 1", "(line 2): expected the name of a parameter, got 'a-b'"],
    ["FROM m\nPARAMETER heat 1", "(line 2): unknown parameter 'heat'"],
    ["FROM m\n\nPARAMETER num_ctxt 1", "(line 3): unknown parameter 'num_ctxt'; did you mean 'num_ctx'?"],
    ["FROM m\nPARAMETER num_ctx", "(line 2): PARAMETER num_ctx: expected a value, got none"],
    ["FROM m\nPARAMETER logit_bias x", "(line 2): PARAMETER logit_bias: JSON Parse error"],
    ["FROM m\nPARAMETER num_ctx 1.5", "(line 2): PARAMETER num_ctx: invalid int value [1.5]: expected a whole number"],
    ["FROM m\nPARAMETER top_p x", "(line 2): PARAMETER top_p: invalid float value [x]: expected a number"],
    [
      "FROM m\nPARAMETER use_mmap yes",
      "(line 2): PARAMETER use_mmap: invalid bool value [yes]: expected true or false",
    ],
    ["FROM m\nREQUIRES banana", "requires must be a valid semver (e.g. 0.14.0), got 'banana'"],
    ["FROM m\nSYSTEM", "(line 2): SYSTEM: expected a value, got none"],
    ["FROM m\nJSON SYSTEM", "(line 2): SYSTEM: expected a value, got none"],
    ["FROM m\nJSON SYSTEM {}", "(line 2): JSON: expected a string in quotes, got {}"],
    ['FROM m\nJSON MESSAGE user "a', '(line 2): JSON: expected a string in quotes, got "a'],
    ['FROM m\nJSON "a"', `(line 2): command must be one of ${commands}, got '"a"'`],
    ['FROM m\nSYSTEM """a\nb', '(line 2): unexpected EOF: the quote """ is never closed'],
  ])("%p", (text, message) => expect(() => parseModelfile(text)).toThrow(message));
});

test("UTF-16 with a byte order mark is read, and a file above the limit is refused", () => {
  const bytes = Buffer.from("\ufeffFROM ü", "utf16le");
  expect(parseModelfile(decodeModelfile(bytes)).from).toEqual(["ü"]);
  expect(parseModelfile(decodeModelfile(bytes.swap16())).from).toEqual(["ü"]);
  expect(() => decodeModelfile(new Uint8Array(17 * 1024 * 1024))).toThrow("expected at most 16777216 bytes");
});

test("a long invalid number is refused in linear time", () => {
  const start = cpuMs();
  expect(() => parseModelfile(`FROM m\nPARAMETER top_p ${"1".repeat(200_000)}x\n`)).toThrow("expected a number");
  expect(cpuMs() - start).toBeLessThan(10_000); // a millisecond; in quadratic time a minute
});

test("many lines and quotes with many blanks are read in linear time", () => {
  const start = cpuMs();
  const stops = parseModelfile(`FROM m\n${"PARAMETER stop a\n".repeat(100_000)}`).parameters["stop"];
  expect(stops).toHaveLength(100_000);
  const blank = "\n".repeat(200_000);
  expect(parseModelfile(`FROM m\nSYSTEM """a${blank}b"""\n`).system).toBe(`a${blank}b`);
  expect(() => parseModelfile(`FROM m\nSYSTEM """a${blank}`)).toThrow("(line 2): unexpected EOF");
  expect(cpuMs() - start).toBeLessThan(10_000); // about 0.2 s; in quadratic time half a minute
});

test("a closing quote must be at the end of a line, and cannot overlap the opening one", () => {
  const system = (text: string): string | undefined => parseModelfile(`FROM m\nSYSTEM ${text}\n`).system;
  expect(system('"""\n"""')).toBe("\n");
  expect(system('"""a""\n"b"""  ')).toBe('a""\n"b');
  expect(system('"a\n\n b" \t')).toBe("a\n\n b");
  expect(system('"\n"')).toBe("\n");
});

test("printing quotes a value only if it would read differently without quotes", () => {
  const text = printModelfile({
    ...EMPTY,
    template: "a\nb",
    system: 'x "y"\nz',
    parameters: { top_k: 1, stop: ["a", " b"] },
    licenses: ["plain text"],
  });
  expect(text).toBe(
    'FROM m\nTEMPLATE "a\nb"\nSYSTEM """x "y"\nz"""\nPARAMETER stop a\nPARAMETER stop " b"\nPARAMETER top_k 1\nLICENSE plain text\n',
  );
});

test("a text that no quotes can hold is printed as JSON, and any other as Ollama reads it", () => {
  const print = (system: string): string => printModelfile({ ...EMPTY, system }).slice("FROM m\n".length, -1);
  expect(print('a"""\nb')).toBe('JSON SYSTEM "a\\"\\"\\"\\nb"');
  expect(print('a"""  \nb')).toBe('JSON SYSTEM "a\\"\\"\\"  \\nb"');
  expect(print("bell\x07")).toBe('JSON SYSTEM "bell\\u0007"');
  expect(print('a"\r\nb')).toBe('SYSTEM """a"\r\nb"""');
  expect(print('"')).toBe('SYSTEM """"""" '.trim());
  expect(print('say """hi""" twice')).toBe('SYSTEM say """hi""" twice');
});

test("a printed Modelfile is read back to the same values", () => {
  const units = [
    "a",
    " ",
    "\n",
    "\r",
    "\t",
    "#",
    "{",
    '"',
    '"""',
    '"""\n',
    "\\",
    "'",
    "SYSTEM x",
    "json ",
    "\0",
    "\x07",
  ];
  const odd = [
    "\u0085",
    "\u00a0",
    "\u200d",
    "\u2028",
    "\ufeff",
    "\u{1f600}",
    '# Modelfile generated by "ollama show"\n',
  ];
  const text = fc.string({ unit: fc.constantFrom(...units, ...odd), minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(
      text,
      fc.array(text, { maxLength: 3 }),
      text,
      text,
      fc.array(text),
      (system, stop, template, content, licenses) => {
        const file: Modelfile = {
          ...EMPTY,
          system,
          template,
          parameters: stop.length > 0 ? { stop, seed: 3 } : { seed: 3 },
          messages: [
            { role: "user", content },
            { role: "assistant", content: "" },
          ],
          licenses,
        };
        expect(parseModelfile(printModelfile(file))).toEqual(file);
      },
    ),
    { seed: 3, numRuns: 2000 },
  );
});

test("any text gives a Modelfile or an AppError", () => {
  const unit = fc.constantFrom(
    "FROM",
    "SYSTEM",
    "PARAMETER",
    "MESSAGE",
    " ",
    "\n",
    '"',
    '"""',
    "stop",
    "user",
    "x",
    "\0",
  );
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 30 }), (text) => {
      try {
        parseModelfile(text);
      } catch (error) {
        expect(error).toBeInstanceOf(AppError);
      }
    }),
    { seed: 9, numRuns: 1000 },
  );
});
