/** Images and recordings in requests, and which of them a model takes. */
import { AppError } from "../../base/index.ts";
import { isAudio, type EngineInfo } from "../../engine/index.ts";
import type { Message } from "../requests/runtime.ts";

type Media = Pick<EngineInfo, "media" | "visionMissing" | "hearingMissing">;

/** The kind of a file, by its first bytes: a recording if it begins like one, else an image. */
const kindOf = (file: Uint8Array): EngineInfo["media"][number] => (isAudio(file) ? "audio" : "image");

/** Throws `bad_request` for files of a kind that the model does not take. */
export function refuseMedia(
  files: readonly Uint8Array[] | undefined,
  { model, info }: { model: string; info: Media },
): void {
  const refused = files?.map(kindOf).find((kind) => !info.media.includes(kind));
  if (refused === undefined) return;
  const [what, why] = refused === "image" ? ["images", info.visionMissing] : ["audio", info.hearingMissing];
  throw new AppError("bad_request", `"${model}" does not support ${what}${why ? `: ${why}` : ""}`);
}

/**
 * Replaces images and recordings that a model does not read by a line of text, in tool results and in answered
 * messages. Clients send the whole conversation each time, so one image would otherwise make every later request fail.
 * Throws `bad_request` for such a file in the user's new message.
 */
export function withoutUnreadable(
  messages: readonly Message[],
  about: { model: string; info: Media },
): readonly Message[] {
  const answered = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.map((message, i) => {
    if (!message.images?.some((file) => !about.info.media.includes(kindOf(file)))) return message;
    if (i < answered || message.role === "tool") return withLines(message, about);
    refuseMedia(message.images, about);
    return message;
  });
}

/** Inserts a line at the position of each file that is left out. */
function withLines(
  { images = [], imagesAt, ...message }: Message,
  { model, info }: { model: string; info: Media },
): Message {
  const lines = {
    image: `[image left out: ${model} cannot see images]`,
    audio: `[recording left out: ${model} cannot hear recordings]`,
  };
  const kept: Uint8Array[] = [];
  const keptAt: number[] = [];
  let content = "";
  let wasLine = false;
  const add = (piece: string, isLine: boolean): void => {
    if (piece === "") return;
    const breaks = (isLine || wasLine) && content !== "" && !content.endsWith("\n");
    content += breaks ? `\n${piece}` : piece;
    wasLine = isLine;
  };
  let at = 0;
  for (const [i, file] of images.entries()) {
    const place = imagesAt?.[i] ?? 0;
    add(message.content.slice(at, place), false);
    at = place;
    const kind = kindOf(file);
    if (!info.media.includes(kind)) {
      add(lines[kind], true);
      continue;
    }
    kept.push(file);
    keptAt.push(content.length);
  }
  add(message.content.slice(at), false);
  return { ...message, content, ...(kept.length > 0 && { images: kept, imagesAt: keptAt }) };
}
