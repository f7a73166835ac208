/** Whisper's rules for the next token: times come in pairs and never decrease, control tokens are never generated. */
import type { SpeechModel } from "../../program/speech.ts";
import type { WhisperVocabulary } from "./vocabulary.ts";

/** Limit of the first time of a window, in steps of 20 ms. */
const FIRST_TIME_MAX = 50;

type Suppressed = Pick<SpeechModel, "suppressed" | "suppressedFirst">;

/**
 * Sets the logits of forbidden tokens to -Infinity.
 * @param written the window's tokens so far, without the prompt
 */
export function applyRules(
  logits: Float32Array,
  written: readonly number[],
  { vocabulary, suppressed, suppressedFirst }: Suppressed & { readonly vocabulary: WhisperVocabulary },
): void {
  const { end, firstTime } = vocabulary;
  const forbid = (from: number, to: number): void => void logits.fill(-Infinity, from, to);
  for (const id of suppressed) if (id !== end && id < firstTime) logits[id] = -Infinity;
  forbid(end + 1, firstTime); // control tokens
  if (written.length === 0) {
    for (const id of suppressedFirst) logits[id] = -Infinity;
    forbid(0, firstTime);
    forbid(firstTime + FIRST_TIME_MAX + 1, logits.length);
    return;
  }
  const isTime = (id: number | undefined): boolean => id !== undefined && id >= firstTime;
  const [last, before] = [written.at(-1), written.at(-2)];
  if (isTime(last)) {
    if (written.length < 2 || isTime(before))
      forbid(firstTime, logits.length); // a text must follow
    else forbid(0, end); // the time of the next text, or the end
  }
  const latest = written.findLast(isTime);
  if (latest !== undefined) {
    const mayRepeat = isTime(last) && !isTime(before); // the next text begins where this one ended
    forbid(firstTime, mayRepeat ? latest : latest + 1);
  }
  if (timesOutweigh(logits, firstTime)) forbid(0, firstTime);
}

/** True if all timestamps together are likelier than each text token. */
function timesOutweigh(logits: Float32Array, firstTime: number): boolean {
  let [text, time] = [-Infinity, -Infinity];
  for (let id = 0; id < firstTime; id++) text = Math.max(text, logits[id]!);
  for (let id = firstTime; id < logits.length; id++) time = Math.max(time, logits[id]!);
  if (time === -Infinity) return false;
  let sum = 0;
  for (let id = firstTime; id < logits.length; id++) sum += Math.exp(logits[id]! - time);
  return time + Math.log(sum) > text;
}

/** The logarithm of the sum of all exponentials. */
export function logSum(logits: Float32Array): number {
  let most = -Infinity;
  for (const value of logits) most = Math.max(most, value);
  let sum = 0;
  for (const value of logits) sum += Math.exp(value - most);
  return most + Math.log(sum);
}
