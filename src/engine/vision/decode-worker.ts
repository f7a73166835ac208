/** The thread that decodes one image file: GIF by our own reader, the rest by libraries in WebAssembly. */
import { decode as decodePng, init as initPng } from "@jsquash/png/decode.js";
// @ts-expect-error The package declares what the module exports, and not that a bundler gives its place.
import pngWasm from "@jsquash/png/codec/pkg/squoosh_png_bg.wasm" with { type: "file" };
import decodeJpeg, { init as initJpeg } from "@jsquash/jpeg/decode.js";
import jpegWasm from "@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm" with { type: "file" };
import decodeWebp, { init as initWebp } from "@jsquash/webp/decode.js";
import webpWasm from "@jsquash/webp/codec/dec/webp_dec.wasm" with { type: "file" };
import { messageOf } from "../../base/index.ts";
import { decodeGif } from "./gif.ts";
import { broken, sizeText, type Size } from "./image.ts";
import type { ImageHeader } from "./image-header.ts";
import { cleanJpeg } from "./jpeg.ts";
import { withoutExtras } from "./png.ts";

declare const self: Worker;

export interface DecodeJob extends ImageHeader {
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The pixels, (height, width, 3), or the problem. */
export type DecodeReply = { readonly data: Uint8Array } | { readonly problem: string };

/** Three bytes per pixel from our decoders, four in the libraries' clamped arrays. */
interface Decoded extends Size {
  readonly data: Uint8Array | Uint8ClampedArray;
}

const decoders: Readonly<Record<ImageHeader["format"], (job: DecodeJob) => Promise<Decoded>>> = {
  PNG: async ({ bytes }) => {
    await initPng(await moduleOf(pngWasm));
    return decodePng(withoutExtras(bytes).buffer).catch(unreadable);
  },
  JPEG: readJpeg,
  WebP: async ({ bytes }) => {
    await initWebp(await moduleOf(webpWasm));
    return decodeWebp(bytes.buffer).catch(unreadable);
  },
  GIF: async ({ bytes, ...size }) => decodeGif(bytes, size),
};

type Imports = ConstructorParameters<typeof WebAssembly.Instance>[1];

async function readJpeg({ bytes, ...size }: DecodeJob): Promise<Decoded> {
  const clean = cleanJpeg(bytes, size);
  const module = await moduleOf(jpegWasm);
  const warnings: string[] = [];
  await initJpeg({
    instantiateWasm: (imports: Imports, done: (instance: WebAssembly.Instance) => void) => {
      const instance = new WebAssembly.Instance(module, imports);
      done(instance);
      return instance.exports;
    },
    printErr: (text: string) => warnings.push(text),
  });
  const decoded = await decodeJpeg(clean.buffer).catch(unreadable);
  // the library fills missing pixels with gray
  if (warnings.some((text) => /premature end/i.test(text))) throw broken("cut off");
  return decoded;
}

/** Replaces the libraries' own messages. */
const unreadable = (): never => {
  throw new Error("its data cannot be read");
};

/** @param path of a file beside this one, or relative to this page */
async function moduleOf(path: string): Promise<WebAssembly.Module> {
  const response = await fetch(new URL(path, import.meta.url));
  return WebAssembly.compile(await response.arrayBuffer());
}

/** Without alpha. */
function rgbOf({ data, width, height }: Decoded): Uint8Array {
  if (data instanceof Uint8Array) return data;
  const out = new Uint8Array(width * height * 3);
  for (let pixel = 0; pixel < width * height; pixel++) {
    for (let channel = 0; channel < 3; channel++) out[3 * pixel + channel] = data[4 * pixel + channel]!;
  }
  return out;
}

async function decode(job: DecodeJob): Promise<DecodeReply> {
  const decoded = await decoders[job.format](job);
  if (decoded.width !== job.width || decoded.height !== job.height) {
    return { problem: `expected ${sizeText(job)}, got ${sizeText(decoded)}` };
  }
  return { data: rgbOf(decoded) };
}

self.onmessage = async ({ data }: MessageEvent<DecodeJob>) => {
  console.log = () => {}; // a library's warnings
  const reply = await decode(data).catch((error: unknown): DecodeReply => ({ problem: messageOf(error) }));
  self.postMessage(reply, "data" in reply ? [reply.data.buffer as ArrayBuffer] : []);
};
