/**
 * Pushes a model: the blobs that the registry lacks, then the manifest, byte for byte, so that pulling it gives a model
 * of the same digest.
 */
import { AppError, checkNotCancelled } from "../../base/index.ts";
import { blobPath, findBlob } from "../store/blobs.ts";
import type { Progress } from "../create/creation.ts";
import type { Library } from "../create/library.ts";
import { blobsOf, MANIFEST_TYPE, parseManifest, readManifestBytes, type Layer } from "../store/manifest.ts";
import { displayName } from "../store/name.ts";
import { digestsOf } from "../store/references.ts";
import { findIn } from "../store/others.ts";
import { manifestPath } from "../store/store.ts";
import { repositoryUrl } from "./address.ts";
import type { RegistryClient } from "./client.ts";
import { makeFindMount } from "./mounts.ts";
import { pause } from "./retry.ts";
import { uploadBlob } from "./upload.ts";

const PROGRESS_MS = 60;
/** Tries before an unreachable registry is an error. */
const CONTACT_TRIES = 3;
const ANSWER_BYTES_MAX = 64 * 1024;

interface PushParts {
  readonly library: Pick<Library, "root" | "others" | "hold">;
}

/** Throws `not_found`, `bad_file`, `registry`, and `cancelled` once the client's signal is aborted. */
export async function* pushModel({ library }: PushParts, client: RegistryClient): AsyncGenerator<Progress, void, void> {
  const { name } = client.address;
  yield { status: "retrieving manifest" };
  const found = await findIn([library.root, ...library.others], name);
  if (!found) {
    yield { status: "couldn't retrieve manifest" };
    throw new AppError("not_found", `model '${displayName(name)}' not found`);
  }
  const { root } = found;
  const path = manifestPath(root, found.name);
  const bytes = await readManifestBytes(path);
  const manifest = parseManifest(bytes, path);
  const release = library.hold(new Set(digestsOf(manifest))); // the model may be deleted meanwhile
  try {
    for (const blob of blobsOf(manifest)) await checkBlob(root, blob);
    const findMount = makeFindMount(client, [library.root, ...library.others]);
    for (const [i, blob] of blobsOf(manifest).entries()) {
      const tries = i === 0 ? CONTACT_TRIES : client.limits.tries;
      yield* upload(blob, { root, client, findMount, tries: Math.min(tries, client.limits.tries) });
    }
    yield { status: "pushing manifest" };
    await client.exchange(
      {
        method: "PUT",
        url: repositoryUrl(client.address, `manifests/${name.tag}`),
        headers: { "content-type": MANIFEST_TYPE },
        body: () => bytes,
      },
      { what: "push model manifest", bytesMax: ANSWER_BYTES_MAX },
    );
    yield { status: "success" };
  } finally {
    release();
  }
}

async function checkBlob(root: string, { digest, size }: Layer): Promise<void> {
  const found = await findBlob(root, digest);
  if (found === size) return;
  throw new AppError(
    "bad_file",
    `${blobPath(root, digest)}: expected ${size} bytes, found ${found === undefined ? "no such blob" : found}`,
  );
}

/** The reported progress never decreases, although bytes may be sent again. */
async function* upload(
  blob: Layer,
  { root, client, findMount, tries }: Omit<Parameters<typeof uploadBlob>[0], "blob" | "onProgress">,
): AsyncGenerator<Progress, void, void> {
  const { digest, size: total } = blob;
  const progress = (completed: number): Progress => ({
    status: "starting upload",
    digest,
    total,
    ...(completed > 0 ? { completed } : {}),
  });
  let [sent, shown] = [0, 0];
  let outcome: "uploaded" | { readonly error: unknown } | undefined;
  yield progress(0);
  uploadBlob({ root, client, blob, findMount, tries, onProgress: (completed) => void (sent = completed) }).then(
    () => void (outcome = "uploaded"),
    (error: unknown) => void (outcome = { error }),
  );
  for (let ms = 1; outcome === undefined; ms = Math.min(2 * ms, PROGRESS_MS)) {
    await pause(ms, client.signal); // short at first: most blobs are small
    checkNotCancelled(client.signal);
    if (sent > shown) yield progress((shown = sent));
  }
  if (outcome !== "uploaded") throw outcome.error;
  if (shown < total) yield progress(total);
}
