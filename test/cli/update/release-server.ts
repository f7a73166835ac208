/** A release on a loopback server, whose program is a script that prints its version. */
import { sign, type KeyPair } from "../../../packaging/release/sign.ts";
import { afterTest } from "../../cleanups.ts";

export interface Served {
  /** Without the list and its signature, which are made of `version` and `manifest`. */
  readonly files: Record<string, Uint8Array | (() => Response)>;
  readonly url: string;
}

export const sha256 = (bytes: Uint8Array | string): string =>
  new Bun.CryptoHasher("sha256").update(bytes).digest("hex");

/** A program that prints a version. */
export const programOf = (version: string): Buffer<ArrayBuffer> =>
  Buffer.from(`#!/bin/sh\necho "hearth ${version} (a test's)"\n`);

/** The entry of a packed file, and the packed file. */
export function packedFile(content: Uint8Array, about: Record<string, unknown>) {
  const packed = Bun.zstdCompressSync(content);
  const entry = {
    kind: "program",
    target: "linux-x64",
    file: "program.zst",
    bytes: packed.length,
    sha256: sha256(packed),
    unpackedBytes: content.length,
    unpackedSha256: sha256(content),
    ...about,
  };
  return { packed, entry };
}

/** Serves files by name until the test ends. */
export function serveFiles(files: Served["files"]): Served {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const found = files[new URL(request.url).pathname.slice(1)];
      if (found === undefined) return new Response("not here", { status: 404 });
      return typeof found === "function" ? found() : new Response(found as Uint8Array<ArrayBuffer>);
    },
  });
  afterTest(() => server.stop(true));
  return { files, url: `http://127.0.0.1:${server.port}` };
}

/** Serves a release of one program. @param change edits its list before it is signed */
export async function serveRelease(
  key: KeyPair,
  version: string,
  { program = programOf(version), change = {} }: { program?: Uint8Array; change?: Record<string, unknown> } = {},
): Promise<Served> {
  const { packed, entry } = packedFile(program, change);
  return serveFiles({ "program.zst": packed, ...(await signedList(key, { version, files: [entry] })) });
}

export async function signedList(key: KeyPair, manifest: unknown): Promise<Record<string, Uint8Array>> {
  const list = Buffer.from(JSON.stringify(manifest));
  return { "release.json": list, "release.json.minisig": Buffer.from(await sign(list, key.secret, "a test")) };
}
