/**
 * Replaces images by a line of text for a model without vision: images in tool results and in answered messages.
 * Clients send the whole conversation each time, so one image would otherwise make every later request fail.
 */
import { AppError } from "../../base/index.ts";
import type { Message } from "../requests/runtime.ts";

/**
 * Throws `bad_request` for an image in the user's new message.
 * @param about.why why the model has no vision, if known
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

/** Puts the line at the position of each image. */
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
