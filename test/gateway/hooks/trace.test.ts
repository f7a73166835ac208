import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseTraceparent } from "../../../src/base/traceparent.ts";
import { childTrace, keptTrace, parseTracestate } from "../../../src/gateway/hooks/trace.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

test("a traceparent has a trace id, a span id and flags", () => {
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
])("%p is not a traceparent", (text) => {
  expect(parseTraceparent(text)).toBeUndefined();
});

test("a child keeps the trace and gets its own span", () => {
  const child = (flags: string) =>
    parseTraceparent(childTrace({ traceparent: `00-${TRACE}-${SPAN}-${flags}` })["traceparent"])!;
  expect(child("01")).toMatchObject({ traceId: TRACE, flags: "01" });
  expect(child("01").parentId).not.toBe(SPAN);
  expect(child("02").flags).toBe("00");
});

test("a tracestate is stored without blanks and empty members", () => {
  expect(parseTracestate("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")).toBe("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  expect(parseTracestate(" a=1 ,\t, fw529a3039@dt=x y ,")).toBe("a=1,fw529a3039@dt=x y");
  const many = Array.from({ length: 32 }, (_, i) => `k${i}=v`);
  expect(parseTracestate(many.join(","))).toBe(many.join(","));
});

test.each([
  null,
  "",
  " , ",
  "a",
  "a=",
  "=1",
  "A=1",
  "a=1,b",
  "a=1,a=2",
  "a=b=c",
  "a=\u00e9",
  "a=\n",
  "@a=1",
  `${"k".repeat(257)}=1`,
  `a=${"v".repeat(257)}`,
  Array.from({ length: 33 }, (_, i) => `k${i}=v`).join(","),
])("%p is not a tracestate", (text) => {
  expect(parseTracestate(text)).toBeUndefined();
});

test("a tracestate that is too long loses its long members first, then the oldest", () => {
  const member = (key: string, length: number): string => `${key}=${"v".repeat(length - key.length - 1)}`;
  const [long, ...short] = [member("long", 200), ...["a", "b", "c", "d"].map((key) => member(key, 127))];
  expect(parseTracestate([long, ...short].join(","))).toBe(short.join(","));
  expect(parseTracestate([...short, member("e", 127)].join(","))).toBe(short.join(","));
  expect(short.join(",").length).toBe(511);
  expect(parseTracestate([member("a", 256), member("b", 255)].join(","))?.length).toBe(512);
  expect(parseTracestate([member("a", 256), member("b", 256)].join(","))).toBe(member("a", 256));
});

test("a tracestate is kept only with its traceparent", () => {
  const traceparent = `00-${TRACE}-${SPAN}-01`;
  expect(keptTrace({ traceparent, tracestate: "a=1, b=2" })).toEqual({ traceparent, tracestate: "a=1,b=2" });
  expect(keptTrace({ traceparent, tracestate: "?" })).toEqual({ traceparent });
  expect(keptTrace({ traceparent: "?", tracestate: "a=1" })).toEqual({});
  expect(childTrace({ traceparent, tracestate: "a=1" })["tracestate"]).toBe("a=1");
  expect(childTrace({ traceparent: null, tracestate: "a=1" })).toEqual({});
});

test("any text parses to a well-formed traceparent or to none", () => {
  const near = fc.stringMatching(/^[0-9a-f]{1,3}-[0-9a-f]{31,33}-[0-9a-f]{15,17}-[0-9a-f]{1,3}-?$/);
  const holds = fc.property(fc.oneof(near, fc.string()), (text) => {
    const trace = parseTraceparent(text);
    if (trace) expect(trace.traceId).toMatch(/^[0-9a-f]{32}$/);
  });
  fc.assert(holds, { numRuns: 500 });
});

test("any text parses to a well-formed tracestate or to none, and the result parses to itself", () => {
  const near = fc.array(fc.stringMatching(/^[a-z][a-z0-9@_*/-]{0,3}=?[ -~]{0,200}$/), { maxLength: 40 });
  const holds = fc.property(
    fc.oneof(
      near.map((list) => list.join(",")),
      fc.string(),
    ),
    (text) => {
      const state = parseTracestate(text);
      if (state === undefined) return;
      expect(state.length).toBeLessThanOrEqual(512);
      expect(parseTracestate(state)).toBe(state);
    },
  );
  fc.assert(holds, { numRuns: 500 });
});
