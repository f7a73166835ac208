/**
 * A conversation with images, for a model that cannot see: a line takes the place of each image that a tool brought, or
 * that was answered already. Clients send it whole each time, so that one image would end it for good.
 */
import { AppError } from "../base/errors.ts";
import type { Message } from "./runtime.ts";

/**
 * Throws `bad_request` for an image that the user shows now.
 * @param about.why why the model cannot see, if that is known
 */
export function withoutImages(
  messages: readonly Message[],
  { model, why }: { model: string; why?: string | undefined },
): readonly Message[] {
  const answered = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.map((message, i) => {
    if (!message.images?.length) return message;
    if (i < answered || message.role === "tool")
      return withLines(message, `[image left out: ${model} cannot see images]`);
    throw new AppError("bad_request", `"${model}" does not support images${why ? `: ${why}` : ""}`);
  });
}

/** The line stands where each image stood, on a line of its own. */
function withLines({ images = [], imagesAt, ...message }: Message, line: string): Message {
  const { content } = message;
  const places = images.map((_, i) => imagesAt?.[i] ?? 0);
  const texts = places.map((at, i) => content.slice(places[i - 1] ?? 0, at));
  const pieces = [...texts.flatMap((text) => [text, line]), content.slice(places.at(-1) ?? 0)].filter(Boolean);
  return {
    ...message,
    content: pieces.reduce((all, piece) => (all.endsWith("\n") ? all + piece : `${all}\n${piece}`)),
  };
}
