/** Parses server-sent events strictly: a frame is `event`, then `data`, then an empty line. */

export interface ReceivedFrame {
  readonly event: string | undefined;
  readonly data: any;
}

/** The frames of a reply, comments left out. */
export async function eventsOf(response: Response): Promise<ReceivedFrame[]> {
  const text = await response.text();
  if (!text.endsWith("\n\n")) throw new Error(`the last frame is not ended: ${text}`);
  return text
    .slice(0, -2)
    .split("\n\n")
    .filter((frame) => !frame.startsWith(":"))
    .map(parseFrame);
}

function parseFrame(frame: string): ReceivedFrame {
  const match = /^(?:event: (\S+)\n)?data: (.*)$/.exec(frame);
  if (!match) throw new Error(`not a frame: ${JSON.stringify(frame)}`);
  return { event: match[1], data: match[2] === "[DONE]" ? "[DONE]" : JSON.parse(match[2]!) };
}
