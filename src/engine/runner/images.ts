/**
 * The images and recordings of prompts: measured, decoded and encoded, each content only once while its rows are
 * cached. They are identified by the bytes of their file, across requests.
 */
import { AppError, assert, messageOf } from "../../base/index.ts";
import type { Media } from "../batching/prompt.ts";
import type { ImagePart, RowCount } from "../vision/index.ts";
import type { ImageLayout } from "./prompt.ts";

/** Bytes of cached vectors, for further questions about an image. */
const KEPT_BYTES_MAX = 256 * 2 ** 20;
/** Number of kept layouts, for further questions: to be measured, a recording must be decoded. */
const LAYOUTS_MAX = 256;

/** A kind of files that a model reads, with the encoder of their rows. */
export interface Sense {
  /** Displayed name. */
  readonly name: "image" | "recording";
  /** The parts of a prompt for a file, without encoding it. Throws `bad_request` for an invalid file. */
  layout(bytes: Uint8Array, signal?: AbortSignal): Promise<readonly ImagePart<RowCount>[]>;
  /** The same parts with their rows. */
  encode(bytes: Uint8Array, signal: AbortSignal): Promise<readonly ImagePart<Omit<Media, "hash">>[]>;
}

export interface Images {
  /** A prompt may have one image. */
  readonly isSingle?: boolean;
  /** Registers files. Throws `bad_request`, naming the file, if one is invalid, too large, or of no kind here. */
  read(images: readonly Uint8Array[], signal?: AbortSignal): Promise<void>;
  /** The part of a prompt for a registered image. */
  layout(image: unknown): ImageLayout;
  /**
   * The runs of rows of registered images. Throws `bad_request`, naming the image, if one cannot be decoded. An
   * encoding ends early once no request waits for it.
   */
  encode(images: readonly unknown[], signal: AbortSignal): Promise<(readonly Media[])[]>;
  /** Aborts running encodings. */
  close(): Promise<void>;
}

interface ImagesParts extends Pick<Images, "isSingle"> {
  /** The sense for a file. Throws `bad_request` if the model has none. */
  readonly senseOf: (bytes: Uint8Array) => Sense;
  /** Releases the encoders. */
  readonly close: () => void;
  /** Called for each image of a prompt: it was encoded, or its rows were cached. */
  readonly onImage: (how: "encoded" | "reused") => void;
}

/** A registered image. */
interface Known {
  readonly hash: string;
  readonly sense: Sense;
  readonly layout: ImageLayout;
  /** Its number within the request, for messages. */
  readonly name: string;
}

/** An encoding in progress, and the number of requests that wait for it. */
interface Encoding {
  readonly media: Promise<readonly Media[]>;
  readonly abort: AbortController;
  waiting: number;
}

export function makeImages({ isSingle = false, senseOf, close, onImage }: ImagesParts): Images {
  const known = new WeakMap<object, Known>(); // by the request's byte array
  const kept = makeKept(); // by hash
  const layoutOf = keptLayouts();
  const running = new Map<string, Encoding>(); // by hash
  let last: Promise<unknown> = Promise.resolve();

  const knownOf = (image: unknown): Known => {
    const found = known.get(image as object);
    assert(found, "an image is in a prompt, and was not read");
    return found;
  };

  /** Starts an encoding after the others: pixels take far more memory than files. */
  const start = (bytes: Uint8Array, { hash, sense }: Known): Encoding => {
    const abort = new AbortController();
    const media = last.then(async () => {
      if (abort.signal.aborted) throw new AppError("cancelled", `${sense.name}: cancelled by the caller`);
      const parts = await sense.encode(bytes, abort.signal);
      const runs = parts.filter((part) => part.kind === "rows");
      const made = runs.map((rows, i): Media => Object.assign({}, rows, { hash: `${hash}:${i}` }));
      kept.set(hash, made);
      return made;
    });
    const encoding = { media, abort, waiting: 0 };
    running.set(hash, encoding);
    last = media.catch(() => {}).then(() => running.get(hash) === encoding && running.delete(hash));
    return encoding;
  };

  const encode = async (bytes: Uint8Array, signal: AbortSignal): Promise<readonly Media[]> => {
    const file = knownOf(bytes);
    const { hash } = file;
    const there = kept.get(hash);
    const found = running.get(hash);
    const shared = found?.abort.signal.aborted ? undefined : found;
    onImage(there || shared ? "reused" : "encoded");
    if (there) return there;
    const encoding = shared ?? start(bytes, file);
    const leave = (): void => void (--encoding.waiting === 0 && encoding.abort.abort());
    encoding.waiting++;
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await encoding.media;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  };

  return {
    isSingle,
    async read(images, signal) {
      for (const [i, bytes] of images.entries()) {
        if (known.has(bytes)) continue;
        const sense = senseOf(bytes);
        const file = { hash: await hashOf(bytes), sense, name: `${sense.name} ${i + 1} of ${images.length}` };
        known.set(bytes, { ...file, layout: await naming(file.name, () => layoutOf(bytes, file, signal)) });
      }
    },
    layout: (image) => knownOf(image).layout,
    async encode(images, signal) {
      const media: (readonly Media[])[] = [];
      for (const image of images) {
        if (signal.aborted) throw new AppError("cancelled", "image: cancelled by the caller");
        media.push(await naming(knownOf(image).name, () => encode(image as Uint8Array, signal)));
      }
      return media;
    },
    async close() {
      for (const { abort } of running.values()) abort.abort();
      await last;
      close();
    },
  };
}

/** Returns a function that measures each content once, as long as its layout is kept. */
function keptLayouts() {
  const layouts = new Map<string, ImageLayout>(); // by hash
  return async (
    bytes: Uint8Array,
    { hash, sense }: Pick<Known, "hash" | "sense">,
    signal?: AbortSignal,
  ): Promise<ImageLayout> => {
    const found = layouts.get(hash);
    if (found) return found;
    const parts = await sense.layout(bytes, signal);
    const layout = parts.map((part) => (part.kind === "marker" ? part : { kind: "rows" as const, rows: part.rows }));
    if (layouts.size >= LAYOUTS_MAX) layouts.delete(layouts.keys().next().value!); // the map is not empty
    layouts.set(hash, layout);
    return layout;
  };
}

/** Hex SHA-256. */
async function hashOf(bytes: Uint8Array): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)).toHex();
}

/** Adds an image's name to its errors; an image that is too large gets the same code as an invalid one. */
async function naming<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "cancelled") throw error;
    const code = error.code === "too_large" ? "bad_request" : error.code;
    throw new AppError(code, `${name}: ${messageOf(error).replace(/^(image|audio): /, "")}`, {
      cause: error,
    });
  }
}

/** Cached rows of images, limited in bytes; evicts the least recently used. */
function makeKept(): {
  get(hash: string): readonly Media[] | undefined;
  set(hash: string, media: readonly Media[]): void;
} {
  const kept = new Map<string, readonly Media[]>();
  const bytesOf = (media: readonly Media[]): number =>
    media.reduce((sum, { vectors, memory }) => sum + vectors.byteLength + (memory?.byteLength ?? 0), 0);
  let bytes = 0;
  return {
    get(hash) {
      const media = kept.get(hash);
      if (!media) return undefined;
      kept.delete(hash);
      kept.set(hash, media);
      return media;
    },
    set(hash, media) {
      bytes -= bytesOf(kept.get(hash) ?? []); // an aborted encoding may have finished nevertheless
      kept.set(hash, media);
      bytes += bytesOf(media);
      for (const [oldest, rows] of kept) {
        if (bytes <= KEPT_BYTES_MAX) return;
        bytes -= bytesOf(rows);
        kept.delete(oldest);
      }
    },
  };
}
