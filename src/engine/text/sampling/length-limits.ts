/**
 * Counts the characters of strings for which a grammar would need too many states, and masks tokens that break their
 * limits. The grammar says by accepting a mark (`schema/length-marks.ts`) that the answer is inside of such a string.
 */
import { makeTokenBytes, type GrammarTokens } from "../tokenizer/grammar-vocabulary.ts";
import { isMarkByte, markText, NO_MARK, type LengthLimits } from "./schema/length-marks.ts";

/** The texts of a vocabulary's tokens. */
export interface TokenTexts {
  bytes(id: number): Uint8Array;
  /** Tokens by the number of their characters before a quote, or of all, at the beginning of a character. */
  readonly byLength: ReadonlyMap<number, readonly number[]>;
  readonly longest: number;
  /** Tokens with a quote. */
  readonly closing: readonly number[];
  /** Tokens that may hold a string from its beginning to its end, or its first characters. */
  readonly opening: readonly { readonly id: number; readonly isWhole: boolean; readonly length: number }[];
  /** Tokens with control characters of marks. */
  readonly marked: readonly number[];
}

/** Takes about 0.1 s for 128,000 tokens. */
export function tokenTextsOf({ tokens, kind }: Pick<GrammarTokens, "tokens" | "kind">): TokenTexts {
  const toBytes = makeTokenBytes(kind);
  const byLength = new Map<number, number[]>();
  const [closing, marked]: [number[], number[]] = [[], []];
  const opening: TokenTexts["opening"][number][] = [];
  for (const [id, token] of tokens.entries()) {
    const bytes = toBytes(token);
    const { length, end } = lengthOf(bytes, 0);
    const same = byLength.get(length);
    if (same) same.push(id);
    else byLength.set(length, [id]);
    if (end < bytes.length) closing.push(id);
    const [first, last] = [bytes.indexOf(QUOTE), bytes.lastIndexOf(QUOTE)];
    if (last >= 0 && (first < last || last < bytes.length - 1))
      opening.push({ id, isWhole: first < last, length: lengthOf(bytes.subarray(last + 1), 0).length });
    if (bytes.some(isMarkByte)) marked.push(id);
  }
  const longest = Math.max(0, ...byLength.keys());
  return { bytes: (id) => toBytes(tokens[id] ?? ""), byLength, longest, closing, opening, marked };
}

const encoder = new TextEncoder();

const [QUOTE, BACKSLASH, U] = [0x22, 0x5c, 0x75];
/** Bytes of an escape that must follow: any, or hexadecimal digits. */
type Pending = number;
const ANY: Pending = -1;

/** The characters before a quote that ends the string, or all; the state after them. */
function lengthOf(bytes: Uint8Array, before: Pending): { length: number; pending: Pending; end: number } {
  let [length, pending] = [0, before];
  for (const [i, byte] of bytes.entries()) {
    if (pending === ANY) pending = byte === U ? 4 : 0;
    else if (pending > 0) pending--;
    else if (byte === QUOTE) return { length, pending, end: i };
    else {
      if (byte === BACKSLASH) pending = ANY;
      if (byte >> 6 !== 2) length++; // else it continues a character
    }
  }
  return { length, pending, end: bytes.length };
}

/** Follows an answer, and masks tokens that would break a limit. */
export class LengthLimiter {
  readonly #limits: readonly LengthLimits[];
  readonly #texts: TokenTexts;
  readonly #accepts: (text: string) => boolean;
  /** Tokens that may hold a string that is too short, or the beginning of one that is too long. */
  readonly #suspects: ReadonlySet<number>;
  /** Characters since the last quote, and what follows them. */
  #count = 0;
  #pending: Pending = 0;
  /** Limits of the string since the last quote, while they are near. */
  #known: LengthLimits | undefined;
  /** The grammar was asked since the last token. */
  #hasLooked = false;

  /** @param accepts returns whether the grammar accepts a text now; it must not move on */
  constructor(limits: readonly LengthLimits[], texts: TokenTexts, accepts: (text: string) => boolean) {
    this.#limits = limits;
    this.#texts = texts;
    this.#accepts = accepts;
    const [min, max] = [Math.max(...limits.map((each) => each.min)), Math.min(...limits.map((each) => each.max))];
    const suspects = texts.opening.filter(({ isWhole, length }) => (isWhole && min > 0) || length > max);
    this.#suspects = new Set(suspects.map(({ id }) => id));
  }

  take(bytes: Uint8Array): void {
    this.#hasLooked = false;
    for (let rest = bytes; ;) {
      const { length, pending, end } = lengthOf(rest, this.#pending);
      this.#count += length;
      this.#pending = pending;
      if (end === rest.length) return;
      this.#count = 0;
      this.#known = undefined;
      rest = rest.subarray(end + 1);
    }
  }

  /** Returns whether the limits allow a token now. */
  allows(id: number): boolean {
    this.#look();
    if (this.#known && this.#isRefused(id, this.#known)) return false;
    return !(this.#suspects.has(id) && this.#breaksWithin(id));
  }

  /** Clears the bits of tokens that would make a string too long, or end it too early. */
  apply(mask: Int32Array): void {
    for (const id of this.#texts.marked) clear(mask, id);
    this.#look();
    if (this.#known && this.#pending === 0) this.#clearByLength(mask, this.#known);
    else if (this.#known) for (const id of idsIn(mask)) if (this.#isRefused(id, this.#known)) clear(mask, id);
    for (const id of this.#suspects) if (has(mask, id) && this.#breaksWithin(id)) clear(mask, id);
  }

  /** Asks the grammar, which accepts no mark within an escape or between the bytes of a character. */
  #look(): void {
    if (this.#hasLooked) return;
    this.#hasLooked = true;
    const near = 2 * this.#texts.longest;
    const limits = this.#limits.filter(({ min, max }) => this.#count < min || this.#count + near > max);
    this.#known = this.#limitsAfter("", limits) ?? this.#known;
  }

  /** The loosest of these limits that hold after a text; none where the grammar accepts free text. */
  #limitsAfter(text: string, among: readonly LengthLimits[]): LengthLimits | undefined {
    const found = among.filter((limits) => this.#accepts(text + markText(limits)));
    if (found.length === 0 || this.#accepts(text + NO_MARK)) return undefined;
    return { min: Math.min(...found.map(({ min }) => min)), max: Math.max(...found.map(({ max }) => max)) };
  }

  #isRefused(id: number, { min, max }: LengthLimits): boolean {
    const bytes = this.#texts.bytes(id);
    const { length, end } = lengthOf(bytes, this.#pending);
    return (length > 0 && this.#count + length > max) || (end < bytes.length && this.#count + length < min);
  }

  /** At the beginning of a character, where the lengths of tokens are known. */
  #clearByLength(mask: Int32Array, limits: LengthLimits): void {
    const { byLength, closing } = this.#texts;
    const room = Math.max(0, limits.max - this.#count);
    for (const [length, ids] of byLength) if (length > room) for (const id of ids) clear(mask, id);
    if (this.#count < limits.min)
      for (const id of closing) if (has(mask, id) && this.#isRefused(id, limits)) clear(mask, id);
  }

  /** Returns whether a string that begins within a token breaks its limits there. */
  #breaksWithin(id: number): boolean {
    const [first = "", ...pieces] = new TextDecoder().decode(this.#texts.bytes(id)).split(/(?<=")/);
    let before = first;
    for (const piece of pieces) {
      const { length } = lengthOf(encoder.encode(piece), 0);
      const limits = this.#limitsAfter(before, this.#limits);
      if (limits && (length > limits.max || (length < limits.min && piece.endsWith('"')))) return true;
      before += piece;
    }
    return false;
  }
}

function* idsIn(mask: Int32Array): Iterable<number> {
  for (const [word, bits] of mask.entries())
    for (let left = bits; left !== 0; left &= left - 1) yield 32 * word + (31 - Math.clz32(left & -left));
}

const has = (mask: Int32Array, id: number): boolean => (mask[id >> 5]! & (1 << (id & 31))) !== 0;
const clear = (mask: Int32Array, id: number): void => void (mask[id >> 5]! &= ~(1 << (id & 31)));
