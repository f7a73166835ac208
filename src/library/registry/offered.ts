/**
 * Checks that a registry has a manifest's blobs before room is made for them: otherwise models would be deleted for a
 * blob that is missing, cut short or damaged. One request per blob, except that a blob once found damaged is read
 * completely and discarded.
 */
import { mapAtOnce } from "../store/at-once.ts";
import { AppError } from "../../base/index.ts";
import { parseDigest, type Digest } from "../store/digest.ts";
import type { Layer } from "../store/manifest.ts";
import { repositoryUrl } from "./address.ts";
import { makeBlobSource, wrongSize } from "./blob-source.ts";
import type { BrokenBlobs } from "./broken-blobs.ts";
import { isRedirect, type RegistryClient } from "./client.ts";
import { bounded } from "./download.ts";
import { retry, Transient } from "./retry.ts";
import { StallWatch } from "./stall-watch.ts";

const AT_ONCE = 8;
const TRIES = 3; // the same as for a manifest

/**
 * Throws `registry` if a blob is missing, differs in size from the manifest, or recently had wrong content;
 * `cancelled`.
 */
export async function checkOffered(
  client: RegistryClient,
  { missing, broken }: { missing: readonly Layer[]; broken: BrokenBlobs },
): Promise<void> {
  const { host } = client.address.base;
  const known = missing.filter(({ digest }) => broken.check({ host, digest }));
  await mapAtOnce(missing, (blob) => checkOne(client, blob), AT_ONCE);
  for (const blob of known) {
    const place = { host, digest: blob.digest };
    const found = await digestThere(client, blob);
    if (found !== blob.digest) throw broken.note(place, found);
    broken.forget(place);
  }
}

/** The digest of the registry's content for a blob. Resumes after broken connections. */
async function digestThere(client: RegistryClient, blob: Layer): Promise<Digest> {
  const { limits, signal } = client;
  const source = makeBlobSource(client, blob);
  const hasher = new Bun.CryptoHasher("sha256");
  let at = 0;
  const read = async (): Promise<void> => {
    using watch = new StallWatch({ stallMs: limits.stallMs, wanted: signal });
    const { kind, body } = await source.open({ from: at, to: blob.size }, watch);
    try {
      for await (const piece of bounded(body, { skip: kind === "whole" ? at : 0, length: blob.size - at })) {
        watch.moved();
        hasher.update(piece);
        at += piece.length;
      }
    } catch (error) {
      throw watch.translate(error, source.host);
    }
    if (at < blob.size) throw new Transient(`${source.host}: the connection ended early`);
  };
  if (blob.size > 0) await retry(read, { limits, signal, progress: () => at });
  return parseDigest(`sha256:${hasher.digest("hex")}`);
}

async function checkOne(client: RegistryClient, blob: Layer): Promise<void> {
  const { limits, signal, address } = client;
  const url = repositoryUrl(address, `blobs/${blob.digest}`);
  const what = `${url.host}: blob ${blob.digest}`;
  const ask = async (): Promise<void> => {
    using watch = new StallWatch({ stallMs: limits.stallMs, wanted: signal });
    const { status, headers, ok } = await client.send({ method: "HEAD", url }, watch);
    if (isRedirect(status)) return; // a redirect to the content
    if (status === 404) throw new AppError("registry", `${what}: 404: the registry has no such blob`);
    const size = headers.get("content-length");
    if (ok && size !== null && Number(size) !== blob.size) throw wrongSize(blob, { host: url.host, found: size });
  };
  await retry(ask, { limits: { ...limits, tries: Math.min(limits.tries, TRIES) }, signal });
}
