/** Files that a user drops, pastes or picks: pictures for vision models, texts, and documents as their text. */
import type { Signal } from "@preact/signals";
import { bytesText } from "../base/format.ts";
import { DOCUMENT_FAULTS, type DocumentFault, type DocumentText } from "../work/document.ts";
import { work } from "../work/work.ts";
import type { Words } from "../words/index.ts";
import type { Picture, TextFile } from "./tree.ts";

const TEXT_BYTES_MAX = 1_000_000;
const PICTURE_BYTES_MAX = 20_000_000;
const DOCUMENT_BYTES_MAX = 100_000_000;
/** Time limit: a document that takes longer is hostile, or too large for any model. */
const DOCUMENT_MS_MAX = 60_000;
/** Magic bytes of PDF, archives, old Office files and RTF. */
const DOCUMENTS = ["%PDF-", "PK\u0003\u0004", "\u00d0\u00cf\u0011\u00e0", "{\\rtf"] as const;
/** Formats that every model's decoder accepts; others are converted. */
const KNOWN: ReadonlySet<string> = new Set(["image/png", "image/jpeg"]);
/** Longest side of a picture; models downscale further. */
const SIDE_MAX = 2048;

/** A text, with facts about its source file. */
export interface AttachedFile extends TextFile {
  readonly bytes: number;
  readonly parts?: DocumentText["parts"];
  /** True if only its beginning was read. */
  readonly isCut?: boolean;
}

/** The attachments of a message that is not sent yet. */
export interface Unsent {
  readonly pictures: Signal<readonly Picture[]>;
  readonly files: Signal<readonly AttachedFile[]>;
}

type Attached = { readonly picture: Picture } | { readonly file: AttachedFile };

interface AttachOptions {
  readonly words: Words["attachments"];
  readonly signal: AbortSignal;
  /** Called with the number of a document's pages read so far. */
  readonly onProgress: (pages: number) => void;
}

/** Throws an error that names the file; and the signal's reason. */
export async function attach(file: File, options: AttachOptions): Promise<Attached> {
  const { words } = options;
  if (await isDocument(file)) return { file: await documentOf(file, options) };
  if (file.type.startsWith("image/") && file.type !== "image/svg+xml") return { picture: await pictureOf(file, words) };
  if (file.size > TEXT_BYTES_MAX) throw new Error(words.textTooLarge(file.name, bytesText(TEXT_BYTES_MAX)));
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (text.includes("\0")) throw new Error("no text");
    return { file: { name: file.name, text, bytes: file.size } };
  } catch {
    throw new Error(words.unknown(file.name));
  }
}

async function isDocument(file: File): Promise<boolean> {
  if (/\.eml$/i.test(file.name)) return true;
  const bytes = await file
    .slice(0, 1024)
    .arrayBuffer()
    .catch(() => new ArrayBuffer(0));
  const head = new TextDecoder("latin1").decode(bytes);
  return head.includes(DOCUMENTS[0]) || DOCUMENTS.some((begin) => head.startsWith(begin));
}

async function documentOf(file: File, { words, signal, onProgress }: AttachOptions): Promise<AttachedFile> {
  const { name, size } = file;
  if (size > DOCUMENT_BYTES_MAX) throw new Error(words.documentTooLarge(name, bytesText(DOCUMENT_BYTES_MAX)));
  const limit = AbortSignal.timeout(DOCUMENT_MS_MAX);
  const options = { signal: AbortSignal.any([signal, limit]), onProgress };
  try {
    const { text, parts, isCut } = await work<DocumentText>({ kind: "document", file, name }, options);
    return { name, text, bytes: size, isCut, ...(parts ? { parts } : {}) };
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) throw new Error(words.tookTooLong(name));
    const fault = error instanceof Error ? error.message : "";
    throw new Error(isFault(fault) ? words.faults[fault](name) : words.faults.damaged(name));
  }
}

const isFault = (text: string): text is DocumentFault => DOCUMENT_FAULTS.some((fault) => fault === text);

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
