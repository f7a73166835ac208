/** Files that somebody drops, pastes or picks: pictures for models that see, and texts. */
import { bytesText } from "../base/format.ts";
import type { Words } from "../words/index.ts";
import type { Picture, TextFile } from "./tree.ts";

const TEXT_BYTES_MAX = 1_000_000;
const PICTURE_BYTES_MAX = 20_000_000;
/** What every model's decoder takes; others are drawn anew. */
const KNOWN: ReadonlySet<string> = new Set(["image/png", "image/jpeg"]);
/** The longer side of a picture; models see less than that. */
const SIDE_MAX = 2048;

export type Attached = { readonly picture: Picture } | { readonly file: TextFile };

/** Throws, naming the file, what is wrong with it. */
export async function attach(file: File, words: Words["attachments"]): Promise<Attached> {
  if (file.type.startsWith("image/") && file.type !== "image/svg+xml") return { picture: await pictureOf(file, words) };
  if (file.size > TEXT_BYTES_MAX) throw new Error(words.textTooLarge(file.name, bytesText(TEXT_BYTES_MAX)));
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (text.includes("\0")) throw new Error("no text");
    return { file: { name: file.name, text } };
  } catch {
    throw new Error(words.unknown(file.name));
  }
}

async function pictureOf(file: File, words: Words["attachments"]): Promise<Picture> {
  if (file.size > PICTURE_BYTES_MAX) {
    throw new Error(words.pictureTooLarge(file.name, bytesText(PICTURE_BYTES_MAX)));
  }
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(words.unreadable(file.name));
  });
  const scale = Math.min(1, SIDE_MAX / Math.max(bitmap.width, bitmap.height));
  if (scale === 1 && KNOWN.has(file.type)) return { type: file.type, base64: await base64Of(file) };
  const canvas = new OffscreenCanvas(Math.round(bitmap.width * scale), Math.round(bitmap.height * scale));
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const type = file.type === "image/jpeg" ? "image/jpeg" : "image/png";
  return { type, base64: await base64Of(await canvas.convertToBlob({ type })) };
}

async function base64Of(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x80_00) text += String.fromCharCode(...bytes.subarray(at, at + 0x80_00));
  return btoa(text);
}
