/** Parts of a message, texts and images, as one content: what images are and where among the text they stand. */
import type { Message } from "../../runtime/portable.ts";

/** A text, or the bytes of an image. */
export type ContentPart = string | Uint8Array;

type Content = Pick<Message, "content" | "images" | "imagesAt">;

/** @param between what stands between two texts; beside an image nothing does */
export function joinParts(parts: readonly ContentPart[], between: string): Content {
  const images: Uint8Array[] = [];
  const imagesAt: number[] = [];
  let content = "";
  for (const [i, part] of parts.entries()) {
    if (typeof part === "string") content += typeof parts[i - 1] === "string" ? between + part : part;
    else {
      images.push(part);
      imagesAt.push(content.length);
    }
  }
  if (images.length === 0) return { content };
  return { content, images, ...(imagesAt.some((at) => at > 0) ? { imagesAt } : {}) };
}
