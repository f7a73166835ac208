/** Standard input of `hearth run`: text, or an image or a recording for a model that takes it. */
import type { Takes } from "./image-paths.ts";

/** The beginnings of such files, as Latin-1. */
const BEGINNINGS: Readonly<Record<keyof Takes, RegExp>> = {
  image: /^(?:\x89PNG|\xff\xd8\xff|GIF8|RIFF[^]{4}WEBP)/,
  recording:
    /^(?:(?:RIFF|RF64)[^]{4}WAVE|fLaC|OggS|[^ -~]E\xdf\xa3|ID3|\xff[\xf0-\xf3\xf8-\xfb]|[^]{4}ftyp(?!he|mif|msf|avi))/,
};

/** Byte order marks. */
const MARKS: Readonly<Record<string, "utf-16le" | "utf-16be">> = { "\xff\xfe": "utf-16le", "\xfe\xff": "utf-16be" };

interface Piped {
  readonly text: string;
  /** Base64 of a file. */
  readonly images: readonly string[];
}

/** Throws for a file that the model does not take, and for other bytes that are not text. */
export function readPiped(
  bytes: Uint8Array,
  { model, takes }: { readonly model: string; readonly takes: Takes },
): Piped {
  const start = Buffer.from(bytes.subarray(0, 12)).toString("latin1");
  const kind = (["image", "recording"] as const).find((each) => BEGINNINGS[each].test(start));
  if (kind && takes[kind]) return { text: "", images: [Buffer.from(bytes).toString("base64")] };
  const lack = kind === "image" ? "see images" : "hear recordings";
  if (kind) throw new Error(`standard input: expected text, got ${aOrAn(kind)}: '${model}' cannot ${lack}`);
  const encoding = MARKS[start.slice(0, 2)] ?? "utf-8";
  if (encoding === "utf-8" && bytes.includes(0)) throw new Error("standard input: expected text, got other bytes");
  return { text: new TextDecoder(encoding).decode(bytes).trimEnd(), images: [] };
}

const aOrAn = (kind: keyof Takes): string => (kind === "image" ? "an image" : "a recording");
