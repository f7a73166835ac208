/**
 * Regular expressions (ECMA-262, for JSON Schema's `pattern`) → the content of a JSON string in a grammar's notation.
 * Refuses look-around, back-references, word boundaries, property classes, and anchors that are not at the ends.
 */
import { AppError } from "../../../../base/index.ts";
import {
  charCount,
  charExpression,
  complement,
  DIGITS,
  LINE_ENDS,
  SPACE,
  IN_JSON,
  union,
  WORD,
  type CharSet,
  type Spelling,
} from "./char-set.ts";
import { repeat, type Budget } from "./budget.ts";

const MAX_PATTERN_CHARS = 4096; // longest known: zod's e-mail and IPv6 patterns, under 1,000
const MAX_GROUP_DEPTH = 32;
const WIDE_CHARS = 16; // Size from which a class, such as letters, fits a large part of a vocabulary.

type Node =
  | { readonly kind: "set"; readonly set: CharSet }
  | { readonly kind: "choice"; readonly of: readonly Sequence[] }
  | { readonly kind: "repeat"; readonly of: Node; readonly min: number; readonly max: number }
  | { readonly kind: "start" | "end" };
type Sequence = readonly Node[];

/** The state of parsing: the text, the position, and the nesting of groups. */
interface Reader {
  readonly pattern: string;
  readonly chars: readonly string[];
  at: number;
  depth: number;
  readonly fail: (message: string) => never;
}

/** Returns whether a pattern has look-around; then a known `format` beside it can replace it. */
export const looksAround = (pattern: string): boolean => /\(\?<?[=!]/.test(pattern);

/**
 * The grammar of all strings that match, without their quotes.
 * @param where JSON path of the pattern, for errors (`bad_request`)
 * @param spelling absent: as in a JSON string
 */
export function patternGrammar(
  pattern: string,
  options: { where: string; budget: Budget; spelling?: Spelling },
): string {
  const { where, budget, spelling = IN_JSON } = options;
  const fail = (message: string): never => {
    throw new AppError("bad_request", `format: ${where}: pattern '${pattern.slice(0, 80)}': ${message}`);
  };
  if (pattern.length > MAX_PATTERN_CHARS) fail(`at most ${MAX_PATTERN_CHARS} characters, got ${pattern.length}`);
  const reader: Reader = { pattern, chars: Array.from(pattern), at: 0, depth: 0, fail };
  const top = parseChoice(reader);
  if (reader.at < reader.chars.length) fail(`unmatched ')' at ${reader.at}`);
  return `(${top.of.map((sequence) => searched(sequence, { budget, spelling, fail })).join(" | ")})`;
}

interface Writer {
  readonly budget: Budget;
  readonly spelling: Spelling;
  readonly fail: (message: string) => never;
}

/** One top-level branch: without an anchor, any text may precede or follow. */
function searched(sequence: Sequence, writer: Writer): string {
  const only = sequence[0];
  if (sequence.length === 1 && only?.kind === "choice") {
    return `(${only.of.map((each) => searched(each, writer)).join(" | ")})`;
  }
  const start = sequence[0]?.kind === "start" ? 1 : 0;
  const end = sequence.length > start && sequence.at(-1)?.kind === "end" ? sequence.length - 1 : sequence.length;
  const middle = sequence.slice(start, end).map((node) => written(node, writer));
  const anything = `${charExpression(complement([]), writer.spelling)}*`;
  const all = [...(start === 1 ? [] : [anything]), ...middle, ...(end < sequence.length ? [] : [anything])];
  return all.length > 0 ? all.join(" ") : '""';
}

function written(node: Node, writer: Writer): string {
  switch (node.kind) {
    case "set":
      if (node.set.length === 0) return writer.fail("an empty class matches nothing");
      return charExpression(node.set, writer.spelling) ?? writer.fail("a character in it cannot stand there");
    case "choice":
      return `(${node.of.map((each) => each.map((part) => written(part, writer)).join(" ") || '""').join(" | ")})`;
    case "repeat":
      return repeat(writer.budget, written(node.of, writer), { min: node.min, max: node.max, ...sizeOf(node.of) });
    case "start":
    case "end":
      return writer.fail("'^' and '$' are supported at the ends only");
    default:
      return node satisfies never;
  }
}

/** The number of characters of a node's match, separately for narrow and wide classes. */
function sizeOf(node: Node): { narrow: number; wide: number } {
  if (node.kind === "set") return charCount(node.set) > WIDE_CHARS ? { narrow: 0, wide: 1 } : { narrow: 1, wide: 0 };
  if (node.kind !== "choice" && node.kind !== "repeat") return { narrow: 0, wide: 0 };
  const parts = node.kind === "choice" ? node.of.flat() : [node.of];
  const times = node.kind === "repeat" ? (Number.isFinite(node.max) ? node.max : node.min + 1) : 1;
  let [narrow, wide] = [0, 0];
  for (const size of parts.map(sizeOf)) {
    narrow += size.narrow * times;
    wide += size.wide * times;
  }
  return { narrow, wide };
}

function parseChoice(reader: Reader): { kind: "choice"; of: Sequence[] } {
  if (++reader.depth > MAX_GROUP_DEPTH) reader.fail(`groups nest deeper than ${MAX_GROUP_DEPTH}`);
  const of: Node[][] = [[]];
  for (let c = reader.chars[reader.at]; c !== undefined && c !== ")"; c = reader.chars[reader.at]) {
    if (c === "|") {
      reader.at++;
      of.push([]);
    } else of.at(-1)!.push(parseRepeat(reader, parseAtom(reader)));
  }
  reader.depth--;
  return { kind: "choice", of };
}

function parseAtom(reader: Reader): Node {
  const c = reader.chars[reader.at++]!;
  switch (c) {
    case "^":
      return { kind: "start" };
    case "$":
      return { kind: "end" };
    case ".":
      return { kind: "set", set: complement(LINE_ENDS) };
    case "[":
      return { kind: "set", set: parseClass(reader) };
    case "(":
      return parseGroup(reader);
    case "\\":
      return { kind: "set", set: parseEscape(reader) };
    case "*":
    case "+":
    case "?":
      return reader.fail(`nothing to repeat at ${reader.at - 1}`);
    default:
      return single(c);
  }
}

const single = (c: string): Node => ({ kind: "set", set: [[c.codePointAt(0)!, c.codePointAt(0)!]] });

function parseGroup(reader: Reader): Node {
  if (reader.chars[reader.at] === "?") {
    const kind = /^\?(:|<[A-Za-z_$][\w$]*>)/.exec(reader.chars.slice(reader.at, reader.at + 64).join(""));
    if (!kind) reader.fail("look-around and inline flags are not supported");
    reader.at += kind![0].length;
  }
  const group = parseChoice(reader);
  if (reader.chars[reader.at++] !== ")") reader.fail("unclosed group");
  return group;
}

function parseRepeat(reader: Reader, of: Node): Node {
  const c = reader.chars[reader.at];
  let range: readonly [number, number] | undefined;
  if (c === "*" || c === "+" || c === "?") {
    reader.at++;
    range = c === "*" ? [0, Infinity] : c === "+" ? [1, Infinity] : [0, 1];
  } else if (c === "{") {
    const counts = /^\{(\d{1,9})(,(\d{0,9}))?\}/.exec(reader.chars.slice(reader.at, reader.at + 24).join(""));
    if (!counts) return of; // a literal brace, as in ECMAScript outside unicode mode
    reader.at += counts[0].length;
    const min = Number(counts[1]);
    range = [min, counts[2] === undefined ? min : counts[3] ? Number(counts[3]) : Infinity];
  }
  if (!range) return of;
  if (of.kind === "start" || of.kind === "end") reader.fail("an anchor cannot repeat");
  if (range[0] > range[1]) reader.fail(`counts out of order: {${range[0]},${range[1]}}`);
  if (reader.chars[reader.at] === "?") reader.at++; // lazy: matches the same strings
  return { kind: "repeat", of, min: range[0], max: range[1] };
}

function parseClass(reader: Reader): CharSet {
  const negated = reader.chars[reader.at] === "^";
  if (negated) reader.at++;
  let set: CharSet = [];
  while (reader.chars[reader.at] !== "]") {
    const from = parseClassMember(reader);
    const dash = reader.chars[reader.at] === "-" && reader.chars[reader.at + 1] !== "]";
    if (!dash || charCount(from) !== 1) {
      set = union(set, from);
      continue;
    }
    reader.at++;
    const to = parseClassMember(reader);
    if (charCount(to) !== 1) reader.fail("a class cannot end a range");
    if (to[0]![0] < from[0]![0]) reader.fail("range out of order in a class");
    set = union(set, [[from[0]![0], to[0]![0]]]);
  }
  reader.at++;
  return negated ? complement(set) : set;
}

function parseClassMember(reader: Reader): CharSet {
  const c = reader.chars[reader.at++];
  if (c === undefined) return reader.fail("unclosed class");
  if (c !== "\\") return [[c.codePointAt(0)!, c.codePointAt(0)!]];
  if (reader.chars[reader.at] === "b") {
    reader.at++;
    return [[8, 8]];
  }
  return parseEscape(reader);
}

const CLASSES: Readonly<Record<string, CharSet>> = {
  d: DIGITS,
  D: complement(DIGITS),
  w: WORD,
  W: complement(WORD),
  s: SPACE,
  S: complement(SPACE),
};
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };

function parseEscape(reader: Reader): CharSet {
  const c = reader.chars[reader.at++];
  if (c === undefined) return reader.fail("ends in a backslash");
  const set = CLASSES[c];
  if (set) return set;
  const control = CONTROLS[c];
  if (control !== undefined) return [[control, control]];
  if (c === "x" || c === "u") {
    const rest = reader.chars.slice(reader.at, reader.at + 10).join("");
    const code = (c === "x" ? /^([0-9a-fA-F]{2})/ : /^(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,6})\})/).exec(rest);
    const point = code ? parseInt(code[1] ?? code[2]!, 16) : NaN;
    if (!(point <= 0x10ffff)) return reader.fail(`bad escape '\\${c}'`);
    reader.at += code![0].length;
    return [[point, point]];
  }
  if (/[a-zA-Z1-9]/.test(c)) return reader.fail(`'\\${c}' is not supported`);
  return [[c.codePointAt(0)!, c.codePointAt(0)!]];
}
