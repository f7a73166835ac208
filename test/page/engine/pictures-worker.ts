/** The Worker of pictures.test.ts: decodes the files that its server names, and posts what came out to its page. */
import { decodeImage } from "../../../src/page/engine/decode-image.ts";

/** A file's pixels, in base64, or its error. */
export interface Decoded {
  readonly name: string;
  readonly width?: number;
  readonly height?: number;
  readonly data?: string;
  readonly problem?: string;
}

async function decodeAll(): Promise<void> {
  const names = (await (await fetch("/names")).json()) as string[]; // served by pictures.test.ts
  for (const name of names) {
    const bytes = await (await fetch(`/${encodeURIComponent(name)}`)).bytes();
    const decoded = await decodeImage(bytes, new AbortController().signal).then(
      ({ data, ...size }) => ({ ...size, data: data.toBase64() }),
      (error: Error) => ({ problem: error.message }),
    );
    postMessage({ name, ...decoded } satisfies Decoded);
  }
  postMessage({ done: true });
}

if ("WorkerGlobalScope" in globalThis) void decodeAll();
