import { expect, test } from "bun:test";
import { makeLogger } from "../../src/base/log.ts";

test("each event is one line of JSON; debug events are written only if asked for", () => {
  const lines: string[] = [];
  const parts = { write: (line: string) => void lines.push(line), now: () => 0 };
  makeLogger({ ...parts, debug: false }).debug("hidden");
  makeLogger({ ...parts, debug: true }).debug("shown", { text: "two\nlines" });
  makeLogger({ ...parts, debug: false }).warn("careful", { n: 1 });
  expect(lines).toEqual([
    '{"time":"1970-01-01T00:00:00.000Z","level":"debug","msg":"shown","text":"two\\nlines"}\n',
    '{"time":"1970-01-01T00:00:00.000Z","level":"warn","msg":"careful","n":1}\n',
  ]);
});

test("no field of an event replaces its time, level or text", () => {
  const log = makeLogger({ write: () => {}, now: () => 0, debug: false });
  // @ts-expect-error: the line would have the kernels' level in place of its own
  log.warn("CPU kernels failed", { level: "AVX2" });
  // @ts-expect-error: the same of its text
  log.warn("CPU kernels failed", { msg: "no answer" });
});

test("control and bidirectional characters are escaped, and JSON.parse restores them", () => {
  const lines: string[] = [];
  const text = "\x1b[2J\x7f\x9b31m\u202e\u2069";
  makeLogger({ write: (line) => void lines.push(line), now: () => 0, debug: false }).warn(text, { [text]: text });
  expect(lines[0]).toMatch(/^[ -~]+\n$/);
  expect(JSON.parse(lines[0]!)).toMatchObject({ msg: text, [text]: text });
});

test("texts beyond 4,096 characters are cut, also inside lists, and the line stays JSON", () => {
  const lines: string[] = [];
  const log = makeLogger({ write: (line) => void lines.push(line), now: () => 0, debug: false });
  log.info("request", { model: `${"a".repeat(4095)}😀${"b".repeat(5_000_000)}`, list: ['"'.repeat(9000)], short: "x" });
  expect(lines[0]!.length).toBeLessThan(20_000);
  const { model, list, short } = JSON.parse(lines[0]!);
  expect(model).toMatch(/^a{4095}\uFFFD… \(5004097 characters\)$/);
  expect(list[0]).toEndWith("… (9000 characters)");
  expect(short).toBe("x");
});
