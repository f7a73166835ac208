/**
 * Recognises replies that only acknowledge: an acknowledgement token at the start or the end of the text, with any
 * markup around it. In the middle of a text the token is an ordinary word.
 */

export const ACK_TOKEN = "HEARTBEAT_OK";

/**
 * Characters that may surround a token without being text: blanks, HTML tags and entities, emphasis, quotes, full
 * stops.
 */
const MARKUP = String.raw`(?:\s|&nbsp;|<[^<>]{0,200}>|[*_~\x60"'])`;
const AT_START = new RegExp(`^${MARKUP}*${ACK_TOKEN}(?![\\p{L}\\p{N}_])${MARKUP}*[.!:,;–—-]?${MARKUP}*`, "u");
const AT_END = new RegExp(`(?<![\\p{L}\\p{N}])${ACK_TOKEN}${MARKUP}*[.!]?${MARKUP}*$`, "u");

/** The token is searched for only in this many characters at the end of a text, which bounds the time. */
const TAIL_CHARS = 1000;

export interface Acknowledged {
  /** True if the token was there, or the text was empty. */
  readonly isAck: boolean;
  /** The text without the token. */
  readonly text: string;
}

/** Strips acknowledgement tokens from both ends. */
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

/** Matches letters, digits, emoji. */
const SAYS_SOMETHING = /[\p{L}\p{N}\p{So}]/u;

/** Returns "" if only markup, quotes or bullets are left of a text; else the text. */
const bare = (text: string): string => (SAYS_SOMETHING.test(text.replace(new RegExp(MARKUP, "gu"), "")) ? text : "");

/**
 * The part of a reply to send; undefined: nothing.
 * @param ackMaxChars text besides an acknowledgement is not sent if it has at most this length; 0 outside of
 * heartbeats, because a short reply has a meaning there
 */
export function replyToSend(reply: string, ackMaxChars: number): string | undefined {
  const { isAck, text } = stripAck(reply);
  return isAck && text.length <= ackMaxChars ? undefined : text;
}
