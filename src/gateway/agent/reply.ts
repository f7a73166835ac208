/** The text that is sent for a turn's answer: nothing for an acknowledgement, and a mark at a truncated answer. */
import { replyToSend } from "./ack.ts";
import type { TurnResult } from "./turn.ts";

const CUT_OFF = " […]";

/** @param ackMaxChars see `replyToSend` */
export function replyOf({ text, isTruncated }: TurnResult, ackMaxChars: number): string | undefined {
  const reply = replyToSend(text, ackMaxChars);
  return reply !== undefined && isTruncated ? reply + CUT_OFF : reply;
}
