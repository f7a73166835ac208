/**
 * Signatures of releases in minisign's format, checked with WebCrypto: `minisign -Vm release.json -P KEY` checks the
 * same files by hand. https://jedisct1.github.io/minisign
 */
import { AppError } from "../../base/index.ts";

const ID_BYTES = 8;
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const ED25519 = "Ed";
/** Ed25519 over the BLAKE2b-512 of the file; current versions of minisign write nothing else. */
const HASHED = "ED";
const TRUSTED = "trusted comment: ";

export interface PublicKey {
  readonly id: Uint8Array;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** @param text one line of base64, such as `RWQ…`. Throws `bad_request`. */
export function parsePublicKey(text: string): PublicKey {
  const bytes = fromBase64(text);
  if (bytes?.length !== 2 + ID_BYTES + KEY_BYTES || latin(bytes, 0, 2) !== ED25519)
    throw new AppError(
      "bad_request",
      `expected a public key of minisign, 56 characters that begin with RW, got '${text}'`,
    );
  return { id: bytes.slice(2, 2 + ID_BYTES), bytes: bytes.slice(2 + ID_BYTES) };
}

/**
 * Checks the signature of a file.
 * @param signature the text of the `.minisig` file
 * @returns its trusted comment, which is signed too
 * Throws `bad_request` for another text, a signature of another key, and a wrong one.
 */
export async function verify(file: Uint8Array, signature: string, key: PublicKey): Promise<string> {
  const [, first, comment, second] = signature.split(/\r?\n/);
  const bytes = fromBase64(first ?? "");
  const over = fromBase64(second ?? "");
  if (
    bytes?.length !== 2 + ID_BYTES + SIGNATURE_BYTES ||
    over?.length !== SIGNATURE_BYTES ||
    !comment?.startsWith(TRUSTED)
  )
    throw new AppError("bad_request", "the signature is damaged: expected the four lines of a minisign file");
  const kind = latin(bytes, 0, 2);
  if (kind !== HASHED)
    throw new AppError(
      "bad_request",
      `the signature is of another kind: expected '${HASHED}', got ${JSON.stringify(kind)}`,
    );
  if (!bytes.slice(2, 2 + ID_BYTES).every((byte, i) => byte === key.id[i]))
    throw new AppError("bad_request", "the release is signed with another key than this program trusts");
  const own = bytes.slice(2 + ID_BYTES);
  const trusted = comment.slice(TRUSTED.length);
  const signed = Buffer.concat([own, Buffer.from(trusted)]);
  const isRight = (await isSigned(hashOf(file), own, key)) && (await isSigned(signed, over, key));
  if (!isRight)
    throw new AppError("bad_request", "the signature does not belong to this file: it was changed after signing");
  return trusted;
}

/** The bytes that a signature of `file` covers. */
export const hashOf = (file: Uint8Array): Uint8Array<ArrayBuffer> =>
  new Uint8Array(new Bun.CryptoHasher("blake2b512").update(file).digest());

async function isSigned(
  data: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  key: PublicKey,
): Promise<boolean> {
  const imported = await crypto.subtle.importKey("raw", key.bytes, ED25519_NAME, false, ["verify"]);
  return crypto.subtle.verify(ED25519_NAME, imported, signature, data);
}

const ED25519_NAME = "Ed25519";

/** Undefined for a text that is not base64. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? new Uint8Array(Buffer.from(text, "base64")) : undefined;
}

const latin = (bytes: Uint8Array, from: number, to: number): string =>
  Buffer.from(bytes.slice(from, to)).toString("latin1");
