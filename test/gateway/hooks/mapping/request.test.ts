import { expect, test } from "bun:test";
import fc from "fast-check";
import { trimSlashes } from "../../../../src/gateway/hooks/mapping/request.ts";
import { parseTracestate } from "../../../../src/gateway/hooks/trace.ts";
import { cpuMs } from "../../../cpu-time.ts";

test("slashes at both ends of a path are removed, and inner ones stay", () => {
  const text = fc.string({ unit: fc.constantFrom("/", "a", "?"), maxLength: 12 });
  fc.assert(fc.property(text, (path) => expect(trimSlashes(path)).toBe(path.replace(/^\/+|\/+$/g, ""))));
});

/** Length of a stranger's path and header: many thousands of characters. */
const LENGTH = 60_000;

test("a path of slashes is trimmed in linear time", () => {
  const startedMs = cpuMs();
  for (let i = 0; i < 10; i++) trimSlashes(`a${"/".repeat(LENGTH)}b`);
  expect(cpuMs() - startedMs).toBeLessThan(1000); // quadratic: 10 s
});

test("a list of blanks is parsed in linear time", () => {
  const startedMs = cpuMs();
  for (let i = 0; i < 20; i++) parseTracestate(`a=b${" ".repeat(32_000)}c`);
  expect(cpuMs() - startedMs).toBeLessThan(1000); // quadratic: 8 s
  expect(parseTracestate(" \ta=b \t, c=d\t ")).toBe("a=b,c=d");
});
