/** Cuts a window's tokens at their times. */
import type { WhisperVocabulary } from "./vocabulary.ts";

/** A piece of a window: its time in seconds from the window's beginning, and its tokens, times included. */
export interface Piece {
  readonly start: number;
  readonly end: number;
  readonly tokens: readonly number[];
}

const STEP_SECONDS = 0.02;

/**
 * @param seconds the window's length
 * @returns the pieces, and the time up to which the window was transcribed, at which the next one begins
 */
export function piecesOf(
  tokens: readonly number[],
  seconds: number,
  { firstTime }: Pick<WhisperVocabulary, "firstTime">,
): { pieces: Piece[]; until: number } {
  const isTime = (id: number | undefined): boolean => id !== undefined && id >= firstTime;
  const timeOf = (id: number | undefined): number => ((id ?? firstTime) - firstTime) * STEP_SECONDS;
  const borders = tokens.flatMap((id, i) => (i > 0 && isTime(id) && isTime(tokens[i - 1]) ? [i] : []));
  const endsComplete = isTime(tokens.at(-1)) && !isTime(tokens.at(-2)); // no piece is open
  if (borders.length === 0) {
    const last = tokens.findLast(isTime);
    const start = isTime(tokens[0]) ? timeOf(tokens[0]) : 0;
    const end = last !== undefined && timeOf(last) > start ? timeOf(last) : seconds;
    return { pieces: [{ start, end: Math.min(end, seconds), tokens }], until: seconds };
  }
  const cuts = [0, ...borders, ...(endsComplete ? [tokens.length] : [])];
  const pieces = cuts.slice(1).map((to, i) => {
    const part = tokens.slice(cuts[i], to);
    return { start: timeOf(part[0]), end: Math.min(timeOf(part.at(-1)), seconds), tokens: part };
  });
  const until = timeOf(tokens[borders.at(-1)! - 1]); // there is at least one
  return { pieces, until: endsComplete || until <= 0 ? seconds : until };
}
