/**
 * Searches a growing text for triggers: outside thoughts, and some triggers only at the start of an answer or after a
 * call. Texts are binary strings, one character per byte, because a token may end inside a character.
 */

export interface Trigger {
  readonly text: string;
  /** Index of the grammar that follows it. */
  readonly grammar: number;
  /** True if it counts only at the start of the answer or after a call; blanks, `;` and `,` may precede it. */
  readonly atStart?: boolean;
}

interface Watched {
  readonly triggers: readonly Trigger[];
  readonly thinking?: { readonly open: string; readonly close: string };
}

export interface OpenedGrammar {
  readonly grammar: number;
  /** The part of the newest piece up to the end of the trigger. */
  readonly opening: string;
  /** The rest of the newest piece, after the trigger. */
  readonly rest: string;
}

interface State {
  readonly phase: "start" | "thinking" | "answer";
  /** The text since the last call or change of thinking; only its end if it is long. */
  readonly text: string;
  /** `text` has its beginning. */
  readonly isWhole: boolean;
}

export interface Watch {
  /** True if the text so far ends inside thoughts. */
  readonly isThinking: boolean;
  /** The trigger that a piece would complete, without changing the state. */
  find(piece: string): OpenedGrammar | undefined;
  /** Appends a piece; returns whether it completed a trigger. */
  push(piece: string): boolean;
  /** Restarts after a call. */
  restart(): void;
}

/** Maximum blanks before a trigger at the start. */
const BLANKS_MAX = 64;

export function makeWatch({ triggers: given, thinking }: Watched, isThinking: boolean): Watch {
  const triggers = given.map((each) => ({ ...each, text: binaryOf(each.text) }));
  const tags = thinking && { open: binaryOf(thinking.open), close: binaryOf(thinking.close) };
  const longest = Math.max(1, ...triggers.map(({ text }) => text.length));
  const answer: State = { phase: "answer", text: "", isWhole: true };
  let state: State = tags ? { ...answer, phase: isThinking ? "thinking" : "start" } : answer;

  /** The state after a piece. */
  const step = (piece: string): { readonly state: State; readonly found?: OpenedGrammar } => {
    let { phase, text, isWhole } = state;
    let seen = text.length; // characters of the answer that were searched earlier
    text += piece;
    if (phase === "start" && tags) {
      const said = text.replace(/^[ \t\r\n]+/, "");
      if (said !== tags.open && tags.open.startsWith(said)) return { state: { phase, text, isWhole } };
      phase = said.startsWith(tags.open) ? "thinking" : "answer";
      if (phase === "thinking") text = said.slice(tags.open.length);
      seen = 0;
    }
    if (phase === "thinking" && tags) {
      const end = text.indexOf(tags.close);
      if (end < 0) return { state: { phase, text: lastOf(text, tags.close.length - 1), isWhole: false } };
      text = text.slice(end + tags.close.length);
      [phase, isWhole, seen] = ["answer", true, 0];
    }
    const end = firstEnd(triggers, text, { seen, isWhole });
    if (end) {
      const rest = text.slice(end.at);
      return {
        state: answer,
        found: { grammar: end.grammar, rest, opening: piece.slice(0, piece.length - rest.length) },
      };
    }
    isWhole &&= text.length <= longest + BLANKS_MAX;
    return { state: { phase, text: isWhole ? text : lastOf(text, longest - 1), isWhole } };
  };

  return {
    get isThinking() {
      return state.phase === "thinking";
    },
    find: (piece) => step(piece).found,
    push(piece) {
      const next = step(piece);
      state = next.state;
      return next.found !== undefined;
    },
    restart: () => void (state = answer),
  };
}

const lastOf = (text: string, count: number): string => text.slice(Math.max(0, text.length - count));

/** The end of the first trigger that ends after `seen` characters; the longest trigger if several end there. */
function firstEnd(
  triggers: readonly Trigger[],
  text: string,
  { seen, isWhole }: { seen: number; isWhole: boolean },
): { readonly at: number; readonly grammar: number } | undefined {
  const start = /^[\s;,]*/.exec(text)![0].length; // also matches an empty text
  let best: { at: number; grammar: number; length: number } | undefined;
  for (const { text: wanted, grammar, atStart = false } of triggers) {
    const { length } = wanted;
    const from = Math.max(0, seen - length + 1);
    const found = atStart ? (isWhole && text.startsWith(wanted, start) ? start : -1) : text.indexOf(wanted, from);
    const at = found + length;
    if (found < 0 || at <= seen || (best && (at > best.at || (at === best.at && length < best.length)))) continue;
    best = { at, grammar, length };
  }
  return best;
}

/** A text's UTF-8 as a binary string. */
export const binaryOf = (text: string): string => toBinary(new TextEncoder().encode(text));

export function toBinary(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
