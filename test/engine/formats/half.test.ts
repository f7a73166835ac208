/** Half floats against the engine's own `Float16Array`, over all 65,536 patterns. */
import { expect, test } from "bun:test";
import { floatToHalf, halfAt, halfToFloat } from "../../../src/engine/formats/half.ts";

const patterns = Uint16Array.from({ length: 65_536 }, (_, bits) => bits);
const values = new Float16Array(patterns.buffer);

test("every half float has the value that Float16Array gives it", () => {
  const wrong = [...patterns].filter((bits) => !Object.is(halfToFloat(bits), values[bits]!));
  expect(wrong).toEqual([]);
});

test("every half float except NaN converts back to its bits", () => {
  const wrong = [...patterns].filter((bits) => !Number.isNaN(values[bits]!) && floatToHalf(values[bits]!) !== bits);
  expect(wrong).toEqual([]);
  expect(floatToHalf(NaN)).toBe(0x7e00);
});

test("values between two half floats round to the nearest, ties to even", () => {
  const wrong: string[] = [];
  for (let bits = 0; bits < 0x7bff; bits++) {
    const step = values[bits + 1]! - values[bits]!;
    for (const part of [0.25, 0.5, 0.75]) {
      const nearest = part === 0.75 || (part === 0.5 && bits % 2 === 1) ? bits + 1 : bits;
      const got = floatToHalf(values[bits]! + part * step);
      if (got !== nearest) wrong.push(`${bits} + ${part}: expected ${nearest}, got ${got}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(floatToHalf(65_520)).toBe(0x7c00);
  expect(floatToHalf(-1e9)).toBe(0xfc00);
});

test("a half float is read little-endian at any offset", () => {
  expect(halfAt(Uint8Array.of(9, 0x00, 0x3c, 9), 1)).toBe(1);
  expect(halfAt(Uint8Array.of(0x00, 0xc0), 0)).toBe(-2);
});
