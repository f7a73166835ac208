/** Joins the parts of a message, texts and images, into one content with the positions of the images. */
import type { Message } from "../../runtime/portable.ts";

/** A text, or the bytes of an image. */
export type ContentPart = string | Uint8Array;

type Content = Pick<Message, "content" | "images" | "imagesAt">;

/** @param between separator between two texts; none beside an image */
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
