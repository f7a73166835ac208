import { expect, test } from "bun:test";
import { isActive } from "../../../src/gateway/agent/active-hours.ts";

const at = (time: string): number => Date.parse(`2026-01-05T${time}:00Z`);
const hours = (start: string, end: string, timezone = "UTC") => ({ start, end, timezone });

test.each([
  ["08:00", hours("08:00", "18:00"), true],
  ["07:59", hours("08:00", "18:00"), false],
  ["17:59", hours("08:00", "18:00"), true],
  ["18:00", hours("08:00", "18:00"), false],
  ["23:59", hours("08:00", "24:00"), true],
  ["00:00", hours("08:00", "24:00"), false],
  ["23:00", hours("22:00", "06:00"), true],
  ["05:59", hours("22:00", "06:00"), true],
  ["06:00", hours("22:00", "06:00"), false],
  ["03:00", hours("09:00", "09:00"), true],
  ["07:30", hours("08:00", "18:00", "Europe/Paris"), true],
  ["17:30", hours("08:00", "18:00", "Europe/Paris"), false],
  ["03:00", hours("08:00", "18:00", "Nowhere/Else"), true],
] as const)("the active hours at %s UTC", (time, active, expected) => {
  expect(isActive(active, at(time))).toBe(expected);
});

test("an agent without active hours is always active", () => {
  expect(isActive(undefined, 0)).toBe(true);
});
