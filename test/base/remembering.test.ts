import { expect, test } from "bun:test";
import { remembering } from "../../src/base/remembering.ts";

test("a result is computed once for equal lists, and anew for other lists", () => {
  const made: string[] = [];
  const join = remembering((texts) => {
    made.push(texts.join("+"));
    return { text: texts.join("+") };
  });
  expect(join(["a", "b"])).toBe(join(["a", "b"]));
  expect(join(["a,b"]).text).toBe("a,b");
  expect(join(["a", ",b"]).text).toBe("a+,b");
  expect(join([]).text).toBe("");
  expect(join([""]).text).toBe("");
  expect(made).toEqual(["a+b", "a,b", "a+,b", "", ""]);
});

test("all results are dropped once sixteen are kept", () => {
  let count = 0;
  const counted = remembering(() => ({ number: ++count }));
  for (let i = 0; i < 100; i++) expect(counted([String(i)]).number).toBe(i + 1);
  expect(counted(["99"]).number).toBe(100);
  expect(counted(["0"]).number).toBe(101);
});

test("results of long lists are not kept", () => {
  let count = 0;
  const counted = remembering(() => ({ number: ++count }));
  const long = Array.from({ length: 1000 }, (_, i) => String(i));
  expect([counted(long).number, counted(long).number]).toEqual([1, 2]);
});
