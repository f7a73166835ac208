/**
 * Replies that say that there is nothing to say: the acknowledgement token at the start or the end of a text, whatever
 * markup stands around it. In the middle it is a word like any other.
 */

export const ACK_TOKEN = "HEARTBEAT_OK";

/** What stands around a token without being text: blanks, HTML tags and entities, emphasis, quotes and full stops. */
const MARKUP = String.raw`(?:\s|&nbsp;|<[^<>]{0,200}>|[*_~\x60"'])`;
const AT_START = new RegExp(`^${MARKUP}*${ACK_TOKEN}(?![\\p{L}\\p{N}_])${MARKUP}*[.!:,;–—-]?${MARKUP}*`, "u");
const AT_END = new RegExp(`(?<![\\p{L}\\p{N}])${ACK_TOKEN}${MARKUP}*[.!]?${MARKUP}*$`, "u");

/** A token and the markup around it are looked for in so much of a text's end, so that no text takes long to read. */
const TAIL_CHARS = 1000;

export interface Acknowledged {
  /** Whether the token was there, or there was no text at all. */
  readonly isAck: boolean;
  /** The text without the token. */
  readonly text: string;
}

/** Takes acknowledgement tokens away from both ends. */
export function stripAck(reply: string): Acknowledged {
  let text = reply.trim();
  let isAck = text === "";
  for (;;) {
    const start = AT_START.exec(text)?.[0];
    if (start !== undefined) text = text.slice(start.length);
    const before = Math.max(0, text.length - TAIL_CHARS);
    const end = AT_END.exec(text.slice(before));
    if (end) text = text.slice(0, before + end.index);
    if (start === undefined && !end) break;
    isAck = true;
    text = text.trim();
  }
  return { isAck, text: isAck ? bare(text) : text };
}

/** Letters, digits, emoji. */
const SAYS_SOMETHING = /[\p{L}\p{N}\p{So}]/u;

/** Empty where nothing is left of a text but what stood around the token: markup, quotes, bullets; else the text. */
const bare = (text: string): string => (SAYS_SOMETHING.test(text.replace(new RegExp(MARKUP, "gu"), "")) ? text : "");

/**
 * What to send of a reply, undefined for nothing.
 * @param ackMaxChars what stands beside an acknowledgement and is no longer than this is not sent either; 0 outside of
 * heartbeats, where a reply says more than that it has been read
 */
export function replyToSend(reply: string, ackMaxChars: number): string | undefined {
  const { isAck, text } = stripAck(reply);
  return isAck && text.length <= ackMaxChars ? undefined : text;
}
