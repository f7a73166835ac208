/**
 * The source of a blob's bytes: the registry itself, or its redirect target, which is cached until it fails, because
 * such URLs often expire.
 */
import { AppError } from "../../base/index.ts";
import type { Blob } from "../store/blobs.ts";
import { repositoryUrl } from "./address.ts";
import { failureOf, isElsewhere, type RegistryClient } from "./client.ts";
import { Transient } from "./retry.ts";
import type { StallWatch } from "./stall-watch.ts";

export interface Opened {
  /** `whole`: the server ignores ranges, and `body` starts at the blob's first byte. */
  readonly kind: "range" | "whole";
  readonly body: AsyncIterable<Uint8Array>;
}

export interface BlobSource {
  readonly blob: Blob;
  /** Host of the registry. */
  readonly host: string;
  /**
   * The bytes in [from, to); the body may bring more. It fails as `watch.translate` says. Throws `Transient`,
   * `registry` if the registry's blob differs from the manifest's, and `cancelled`.
   */
  open(range: { from: number; to: number }, watch: StallWatch): Promise<Opened>;
}

export function makeBlobSource(client: RegistryClient, blob: Blob): BlobSource {
  const start = repositoryUrl(client.address, `blobs/${blob.digest}`);
  const { host } = start;
  let direct: URL | undefined;
  return {
    blob,
    host,
    async open({ from, to }, watch) {
      const asked = direct ?? start;
      const headers = { range: `bytes=${from}-${to - 1}` };
      try {
        const { response, url } = await client.follow({ method: "GET", url: asked, headers }, watch);
        if (response.status !== 200 && response.status !== 206) {
          throw await failureOf(response, { what: `${host}: blob ${blob.digest}`, watch, address: client.address });
        }
        const kind = checkHeaders(response, { from, blob, host, isElsewhere: isElsewhere(response, client.address) });
        if (url.href !== start.href) direct = url;
        return { kind, body: response.body ?? emptyBody() };
      } catch (error) {
        if (asked === start || watch.signal.aborted) throw error;
        direct = undefined;
        throw error instanceof AppError ? new Transient(error.message, { cause: error }) : error;
      }
    },
  };
}

async function* emptyBody(): AsyncGenerator<Uint8Array, void, void> {}

interface Context {
  readonly from: number;
  readonly blob: Blob;
  readonly host: string;
  /** True if another server than the registry answers; errors do not quote it. */
  readonly isElsewhere: boolean;
}

export const wrongSize = ({ digest, size }: Blob, { host, found }: { host: string; found: string }): AppError =>
  new AppError("registry", `${host}: blob ${digest}: expected ${size} bytes, as its manifest says, got ${found}`);

/** Checks that the response is the requested range. Throws `registry`, or `Transient` if a repeat may help. */
function checkHeaders(response: Response, { from, blob, host, isElsewhere }: Context): Opened["kind"] {
  const shown = (text: string): string => (isElsewhere ? "something else" : text);
  const encoding = response.headers.get("content-encoding") ?? "identity";
  if (encoding !== "identity") {
    throw new AppError("registry", `${host}: expected content as it is, got ${shown(encoding)}`);
  }
  const expectSize = (found: string | undefined): void => {
    if (found === undefined || Number(found) === blob.size) return;
    throw wrongSize(blob, { host, found: shown(found) });
  };
  if (response.status === 200) {
    expectSize(response.headers.get("content-length") ?? undefined);
    return "whole";
  }
  const text = response.headers.get("content-range") ?? "";
  const match = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(text);
  if (!match || Number(match[1]) !== from) {
    throw new Transient(`${host}: expected a range from byte ${from}, got ${shown(JSON.stringify(text.slice(0, 80)))}`);
  }
  expectSize(match[2] === "*" ? undefined : match[2]);
  return "range";
}
