/**
 * Stop strings: cuts a streamed text before the first of them, and holds back text that could still become one. All
 * strings are searched at once (Aho and Corasick, "Efficient string matching", 1975): each character is read once, for
 * any division into chunks.
 */
import { AppError } from "../../../base/index.ts";

/** Characters of all stop strings together: one table entry each. Real lists have tens. */
const MAX_STOP_CHARS = 65_536;

interface StopMatcher {
  /**
   * Text that cannot be part of a stop string, and the stop string that was found, after which there is no more text.
   */
  push(text: string): { readonly text: string; readonly stop: string | undefined };
  /** The remaining text, once the text is over. */
  end(): string;
}

/** An automaton: node 0 is the root, a node is a prefix of one or more stop strings. */
export interface StopStrings {
  /** Per node: UTF-16 unit → node. */
  readonly next: readonly Map<number, number>[];
  /** Per node: the longest proper suffix that is also a node. */
  readonly fail: Int32Array;
  /** Per node: length of the prefix. */
  readonly depth: Int32Array;
  /** Per node: length of the longest stop string that ends here; 0: none. */
  readonly match: Int32Array;
}

/**
 * The match is the stop string that ends first, and the longest of several that end there, so that any division of a
 * text gives the same result. Empty stop strings are ignored.
 */
export function makeStopMatcher(stops: readonly string[] | StopStrings): StopMatcher {
  const automaton = "next" in stops ? stops : compileStops(stops);
  const { depth, match } = automaton;
  let node = 0;
  let held = "";
  let stop: string | undefined;
  const push = (text: string): { text: string; stop: string | undefined } => {
    if (stop !== undefined) return { text: "", stop };
    const all = held + text;
    for (let i = held.length; i < all.length; i++) {
      node = step(automaton, node, all.charCodeAt(i));
      if (match[node]! === 0) continue;
      const from = i + 1 - match[node]!;
      stop = all.slice(from, i + 1);
      held = "";
      return { text: all.slice(0, from), stop };
    }
    const sure = all.length - depth[node]!;
    held = all.slice(sure);
    return { text: all.slice(0, sure), stop };
  };
  const end = (): string => {
    const rest = held;
    held = "";
    node = 0;
    return rest;
  };
  return { push, end };
}

/** Follows one character; a failure link shortens the prefix, so a whole text takes linear time. */
function step({ next, fail }: StopStrings, from: number, unit: number): number {
  let node = from;
  for (;;) {
    const to = next[node]!.get(unit);
    if (to !== undefined) return to;
    if (node === 0) return 0;
    node = fail[node]!;
  }
}

/** The shared part of matchers of the same stop strings. Throws `bad_request` if they are too long. */
export function compileStops(all: readonly string[]): StopStrings {
  const stops = all.filter((stop) => stop !== "");
  const chars = stops.reduce((sum, stop) => sum + stop.length, 0);
  if (chars > MAX_STOP_CHARS) {
    throw new AppError(
      "bad_request",
      `option "stop": expected at most ${MAX_STOP_CHARS} characters in all, got ${chars}`,
    );
  }
  const next: Map<number, number>[] = [new Map()];
  const depth = new Int32Array(chars + 1);
  const match = new Int32Array(chars + 1);
  for (const stop of stops) {
    let node = 0;
    for (let i = 0; i < stop.length; i++) {
      const unit = stop.charCodeAt(i);
      let child = next[node]!.get(unit);
      if (child === undefined) {
        child = next.push(new Map()) - 1;
        next[node]!.set(unit, child);
        depth[child] = i + 1;
      }
      node = child;
    }
    match[node] = stop.length;
  }
  const automaton = { next, depth, match, fail: new Int32Array(next.length) };
  linkFailures(automaton);
  return automaton;
}

/** Breadth first, so that every shorter prefix is linked before it is needed. */
function linkFailures({ next, fail, depth, match }: StopStrings): void {
  const queue = [...next[0]!.values()];
  for (const node of queue) {
    for (const [unit, child] of next[node]!) {
      fail[child] = step({ next, fail, depth, match }, fail[node]!, unit);
      queue.push(child);
    }
    if (match[node] === 0) match[node] = match[fail[node]!]!;
  }
}
