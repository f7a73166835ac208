/**
 * The only network access of WebLLM's Worker: a `fetch` that serves the files of one model, requests each from this
 * server by digest, and verifies every byte. The library's own integrity checks cover neither shards nor their list.
 */
import { AppError } from "../../../base/index.ts";

/** A file of a model, as its manifest names it. */
export interface ModelFile {
  readonly name: string;
  /** `sha256:` and hex digits, of its content. */
  readonly digest: string;
  readonly size: number;
}

/** Former file names in folders, by the names that the current library requests. */
const FORMER_NAMES: Readonly<Record<string, string>> = { "tensor-cache.json": "ndarray-cache.json" };

interface FetchParts {
  /** The library's base URL of the model: each name below it is a file. */
  readonly base: string;
  readonly files: readonly ModelFile[];
  /** Credentials for this server. */
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

interface FileParts extends Pick<FetchParts, "headers" | "fetch"> {
  readonly signal: AbortSignal;
}

/**
 * Throws `forbidden` for a URL outside of the model, `upstream` if the server fails, and `bad_file` if the bytes have
 * another digest. An unknown name gets 404.
 */
export function makeModelFetch(parts: FetchParts): (input: Request | string, init?: RequestInit) => Promise<Response> {
  const files = new Map(parts.files.map((file) => [file.name, file]));
  return async (input, init) => {
    const { url, signal } = input instanceof Request ? input : new Request(input, init);
    if (!url.startsWith(parts.base)) {
      throw new AppError("forbidden", `WebLLM asked for ${url}, which is not a file of the model: refused`);
    }
    const name = decodeURIComponent(url.slice(parts.base.length));
    const file = files.get(name) ?? files.get(FORMER_NAMES[name] ?? "");
    if (!file) return new Response(null, { status: 404 });
    const { headers, fetch } = parts;
    return new Response(await fetchFile(file, { headers, fetch, signal }));
  };
}

async function fetchFile(file: ModelFile, parts: FileParts): Promise<ArrayBuffer> {
  const { name, digest, size } = file;
  let problem = "";
  for (const cache of ["default", "reload"] as const) {
    // the browser caches this URL for ever
    const bytes = await fetchBytes(file, { ...parts, cache });
    const found = `sha256:${new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex()}`;
    if (bytes.byteLength === size && found === digest) return bytes;
    problem = `expected ${size} bytes with the digest ${digest}, got ${bytes.byteLength} with ${found}`;
  }
  throw new AppError("bad_file", `'${name}': ${problem}`);
}

async function fetchBytes(
  { name, digest }: ModelFile,
  { headers, fetch, ...init }: FileParts & { readonly cache: "default" | "reload" },
): Promise<ArrayBuffer> {
  const response = await fetch(`/api/blobs/${digest}`, { headers: { ...headers }, ...init });
  if (!response.ok) throw new AppError("upstream", `'${name}': the server answered ${response.status}`);
  return response.arrayBuffer();
}
