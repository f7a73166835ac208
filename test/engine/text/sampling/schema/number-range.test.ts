import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  integerGrammar,
  numberGrammar,
  type Bound,
} from "../../../../../src/engine/text/sampling/schema/number-range.ts";
import { acceptorOf } from "./expressions.ts";

const fits = (x: number, { min, max }: { min?: Bound; max?: Bound }): boolean =>
  (!min || x > min.value || (x === min.value && !min.open)) &&
  (!max || x < max.value || (x === max.value && !max.open));

const boundOf = (value: fc.Arbitrary<number>): fc.Arbitrary<Bound> => fc.record({ value, open: fc.boolean() });
const nothing: (text: string) => boolean = () => false;

test("integers are accepted exactly if they lie between the bounds", () => {
  const near = fc.integer({ min: -1200, max: 1200 });
  const bound = fc.option(boundOf(fc.oneof(near, fc.constantFrom(0, 0.5, -0.5, 99, 100, -100, 999.5))), {
    nil: undefined,
  });
  fc.assert(
    fc.property(bound, bound, fc.array(near, { minLength: 20, maxLength: 20 }), (min, max, numbers) => {
      const range = { ...(min && { min }), ...(max && { max }) };
      const grammar = integerGrammar(range);
      const accepts = grammar === undefined ? nothing : acceptorOf(grammar);
      const edges = [min, max].flatMap((each) => (each ? [-1, 0, 1].map((d) => Math.trunc(each.value) + d) : []));
      for (const x of [...numbers, ...edges, 0])
        expect([x, range, accepts(String(x + 0))]).toEqual([x, range, fits(x, range)]);
    }),
    { seed: 21, numRuns: 500 },
  );
});

test("integers have no leading zero, no sign on zero, and fit a double", () => {
  const any = acceptorOf(integerGrammar({})!);
  expect(["0", "-1", "120", "999999999999999"].every(any)).toBe(true);
  expect(["-0", "01", "1.0", "", "-", "1e3", "9999999999999999999"].some(any)).toBe(false);
});

test("numbers are accepted exactly if they lie between the bounds", () => {
  const decimal = fc
    .tuple(fc.integer({ min: -4000, max: 4000 }), fc.integer({ min: 0, max: 3 }))
    .map(([n, d]) => n / 10 ** d);
  const bound = fc.option(boundOf(decimal), { nil: undefined });
  const text = fc.tuple(fc.boolean(), fc.nat(1200), fc.option(fc.stringMatching(/^[0-9]{1,5}$/)), fc.constant(0));
  fc.assert(
    fc.property(bound, bound, fc.array(text, { minLength: 30, maxLength: 30 }), (min, max, texts) => {
      fc.pre(min !== undefined || max !== undefined);
      const range = { ...(min && { min }), ...(max && { max }) };
      const grammar = numberGrammar(range);
      const accepts = grammar === undefined ? nothing : acceptorOf(grammar);
      const near = [min, max].flatMap((b) => (b ? [b.value, b.value + 0.001, b.value - 0.001, b.value + 1] : []));
      const written = near.map((x) => String(Number(x.toFixed(6)) + 0)).filter((each) => !each.includes("e"));
      const spelt = texts.map(
        ([minus, whole, fraction]) => `${minus ? "-" : ""}${whole}${fraction ? `.${fraction}` : ""}`,
      );
      for (const each of [...spelt.filter((s) => !/^-0(\.0*)?$/.test(s)), ...written]) {
        expect([each, range, accepts(each)]).toEqual([each, range, fits(Number(each), range)]);
      }
    }),
    { seed: 22, numRuns: 400 },
  );
});

test("a range without a number has no grammar", () => {
  expect(integerGrammar({ min: { value: 3.1, open: false }, max: { value: 3.9, open: false } })).toBeUndefined();
  expect(numberGrammar({ min: { value: 3, open: true }, max: { value: 3, open: false } })).toBeUndefined();
});
