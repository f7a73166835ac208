import { expect, test } from "bun:test";
import fc from "fast-check";
import { childTraceparent, parseTraceparent } from "../../src/hooks/trace.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

test("a traceparent is its trace, its span and its flags", () => {
  const expected = { traceId: TRACE, parentId: SPAN, flags: "01" };
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual(expected);
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-comes-later`)).toEqual(expected);
});

test.each([
  null,
  "",
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `ff-${TRACE}-${SPAN}-01`,
  `0-${TRACE}-${SPAN}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${"0".repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${"0".repeat(16)}-01`,
  `cc-${TRACE}-${SPAN}-01-${"x".repeat(300)}`,
])("%p is none", (text) => {
  expect(parseTraceparent(text)).toBeUndefined();
});

test("a child keeps the trace and has a span of its own", () => {
  const parent = parseTraceparent(`00-${TRACE}-${SPAN}-01`)!;
  const child = parseTraceparent(childTraceparent(parent))!;
  expect(child).toMatchObject({ traceId: TRACE, flags: "01" });
  expect(child.parentId).not.toBe(SPAN);
  expect(parseTraceparent(childTraceparent({ ...parent, flags: "02" }))?.flags).toBe("00");
});

test("no text makes it throw, and what it takes is well formed", () => {
  const near = fc.stringMatching(/^[0-9a-f]{1,3}-[0-9a-f]{31,33}-[0-9a-f]{15,17}-[0-9a-f]{1,3}-?$/);
  const holds = fc.property(fc.oneof(near, fc.string()), (text) => {
    const trace = parseTraceparent(text);
    if (trace) expect(trace.traceId).toMatch(/^[0-9a-f]{32}$/);
  });
  fc.assert(holds, { numRuns: 500 });
});
