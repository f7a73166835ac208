import { expect, test } from "bun:test";
import { remembering } from "../../src/base/remembering.ts";

test("what was made of a list is made once, and never of another list", () => {
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

test("lists that are too many are forgotten", () => {
  let count = 0;
  const counted = remembering(() => ({ number: ++count }));
  for (let i = 0; i < 100; i++) expect(counted([String(i)]).number).toBe(i + 1);
  expect(counted(["99"]).number).toBe(100);
  expect(counted(["0"]).number).toBe(101);
});

test("nothing is kept of long lists", () => {
  let count = 0;
  const counted = remembering(() => ({ number: ++count }));
  const long = Array.from({ length: 1000 }, (_, i) => String(i));
  expect([counted(long).number, counted(long).number]).toEqual([1, 2]);
});
