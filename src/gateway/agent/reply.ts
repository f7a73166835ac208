/** What people are sent of a turn's answer: nothing where it only acknowledges, and a mark where it was cut off. */
import { replyToSend } from "./ack.ts";
import type { TurnResult } from "./turn.ts";

const CUT_OFF = " […]";

/** @param ackMaxChars as `replyToSend` has it */
export function replyOf({ text, isTruncated }: TurnResult, ackMaxChars: number): string | undefined {
  const reply = replyToSend(text, ackMaxChars);
  return reply !== undefined && isTruncated ? reply + CUT_OFF : reply;
}
