/** The list of a release's files, `release.json`: `packaging/release.ts` writes and signs it. */
import { AppError, readFields, readList, readName, unexpected, type Read } from "../../base/index.ts";

/** The name of the list at a release's address; `.minisig` is appended for its signature. */
export const MANIFEST = "release.json";
/** Larger files of a release are refused, and larger programs. */
const BYTES_MAX = 1 << 30;

/** `program`: the compiled program. `gpu`: a tar of the files of a package that it loads when it uses a GPU. */
export type Kind = "program" | "gpu";

export interface ReleaseFile {
  readonly kind: Kind;
  /** System and processor, such as `linux-x64-musl`. */
  readonly target: string;
  /** Its name at the release's address. It is compressed with Zstandard. */
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly unpackedBytes: number;
  readonly unpackedSha256: string;
  /** The exact version of a package. */
  readonly version?: string;
}

export interface Manifest {
  readonly version: string;
  readonly files: readonly ReleaseFile[];
}

/** Throws `bad_request`. */
export function parseManifest(bytes: Uint8Array): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new AppError("bad_request", `${MANIFEST}: expected JSON`);
  }
  const fields = readFields(value, MANIFEST);
  return { version: readVersion(fields["version"], "version"), files: readList(readFile)(fields["files"], "files") };
}

const readFile: Read<ReleaseFile> = (value, path) => {
  const fields = readFields(value, path);
  const kind = fields["kind"];
  if (kind !== "program" && kind !== "gpu") throw unexpected(`${path}.kind`, "program or gpu", kind);
  const file = readName(fields["file"], `${path}.file`);
  if (!/^(?!\.)[\w.+-]{1,128}$/.test(file)) throw unexpected(`${path}.file`, "a name without folders", file);
  return {
    kind,
    file,
    target: readName(fields["target"], `${path}.target`),
    bytes: readBytes(fields["bytes"], `${path}.bytes`),
    sha256: readDigest(fields["sha256"], `${path}.sha256`),
    unpackedBytes: readBytes(fields["unpackedBytes"], `${path}.unpackedBytes`),
    unpackedSha256: readDigest(fields["unpackedSha256"], `${path}.unpackedSha256`),
    ...(fields["version"] !== undefined && { version: readVersion(fields["version"], `${path}.version`) }),
  };
};

const readBytes: Read<number> = (value, path) => {
  if (!Number.isInteger(value) || Number(value) < 1 || Number(value) > BYTES_MAX)
    throw unexpected(path, `a number of bytes up to ${BYTES_MAX}`, value);
  return Number(value);
};

const readDigest: Read<string> = (value, path) => {
  const text = readName(value, path);
  if (!/^[0-9a-f]{64}$/.test(text)) throw unexpected(path, "64 hexadecimal digits", text);
  return text;
};

const readVersion: Read<string> = (value, path) => {
  const text = readName(value, path);
  if (!/^\d{1,6}\.\d{1,6}\.\d{1,6}(-[0-9A-Za-z.-]{1,40})?$/.test(text))
    throw unexpected(path, "a version such as 1.2.3", text);
  return text;
};
