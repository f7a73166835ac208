/**
 * Answers that try to cost time: every parser takes about as long as reading the answer. A run draws
 * some of the formats by its seed.
 */
import { expect, test } from "bun:test";
import { toolFormats, type ToolFormatName } from "../../../src/runtime/parse/index.ts";
import { drawn } from "../../seed.ts";
import { cut } from "./cut.ts";
import { TOOLS } from "./fixtures.ts";

const LENGTH = 60_000; // a parser that takes quadratic time would need many seconds
const PIECE = 500;

function* endless(length: number): Generator<number> {
  for (;;) yield length;
}

const names = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal

test.each(drawn("formats that read long bodies", names, Math.ceil(names.length / 4)))(
  "%s parses long bodies of one repeated piece in time linear in their length",
  (name) => {
    const { markup } = toolFormats[name];
    const fillers = [" ", '"', '\\"', "{", "[", "<", "\n", "a", " a", '"\\"', ...markup];
    for (const filler of fillers) {
      const whole = `${markup.join("")}${filler.repeat(Math.ceil(LENGTH / filler.length))}`;
      for (const end of ["", "x {}", ...markup]) {
        const parser = toolFormats[name].makeParser(TOOLS);
        const pieces = cut((markup[0] ?? "{") + whole + end, endless(PIECE));
        const events = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end()];
        expect(events.length).toBeLessThan(whole.length);
      }
    }
  },
  60_000,
);
