import { expect, test } from "bun:test";
import { makeLogger } from "../../src/base/log.ts";

test("each event is one line of JSON, debugging only where asked for", () => {
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
