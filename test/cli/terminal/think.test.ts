import { expect, test } from "bun:test";
import { withThinkValue } from "../../../src/cli/terminal/think.ts";

const after = (line: string): string => withThinkValue(line.split(" ")).join(" ");

test("--think takes a level as its value, and no other word", () => {
  expect(after("run m --think Hello there")).toBe("run m --think=true Hello there");
  expect(after("run m Hello --think")).toBe("run m Hello --think=true");
  expect(after("run m --think high Hello")).toBe("run m --think high Hello");
  expect(after("run m --think=low Hello")).toBe("run m --think=low Hello");
  expect(after("run m --think --verbose")).toBe("run m --think=true --verbose");
  expect(after("run m -- --think x")).toBe("run m -- --think x");
});
