/**
 * Signs files as `minisign` does, with a key file that has no password (`minisign -G -W`, or `newKey`): hosted CI keeps
 * it as a secret. `src/cli/update/minisign.ts` checks the signatures.
 */
import { hashOf } from "../../src/cli/update/minisign.ts";

const SALT_AND_LIMITS_BYTES = 48;
const ID_BYTES = 8;
const SEED_BYTES = 32;
/** The frame of an Ed25519 seed in PKCS #8, which is the form that WebCrypto takes. */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

export interface KeyPair {
  /** The text of the secret key's file. */
  readonly secret: string;
  /** One line. */
  readonly publicKey: string;
}

export async function newKey(): Promise<KeyPair> {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  const seed = Buffer.from(await crypto.subtle.exportKey("pkcs8", pair.privateKey)).subarray(-SEED_BYTES);
  const point = Buffer.from(await crypto.subtle.exportKey("raw", pair.publicKey));
  const id = Buffer.from(crypto.getRandomValues(new Uint8Array(ID_BYTES)));
  const own = Buffer.concat([id, seed, point]);
  const checksum = new Bun.CryptoHasher("blake2b256").update("Ed").update(own).digest();
  const noPassword = Buffer.alloc(2 + 2 + SALT_AND_LIMITS_BYTES);
  noPassword.write("B2", 2);
  const bytes = Buffer.concat([Buffer.from("Ed"), noPassword, own, checksum]);
  const secret = `untrusted comment: minisign encrypted secret key\n${bytes.toString("base64")}\n`;
  return { secret, publicKey: publicLine(id, point) };
}

const publicLine = (id: Uint8Array, point: Uint8Array): string =>
  Buffer.concat([Buffer.from("Ed"), id, point]).toString("base64");

interface SecretKey {
  readonly id: Buffer;
  readonly seed: Buffer;
  readonly point: Buffer;
}

function parseSecret(text: string): SecretKey {
  const bytes = Buffer.from(text.split("\n")[1] ?? "", "base64");
  const own = bytes.subarray(2 + 4 + SALT_AND_LIMITS_BYTES);
  const isPlain = bytes.subarray(0, 6).equals(Buffer.from("Ed\0\0B2"));
  if (!isPlain || own.length !== ID_BYTES + 2 * SEED_BYTES + 32)
    throw new Error("secret key: expected the file of 'minisign -G -W', a key without a password");
  const parts = [0, ID_BYTES, ID_BYTES + SEED_BYTES, ID_BYTES + 2 * SEED_BYTES];
  const [id, seed, point] = parts.slice(0, 3).map((from, i) => own.subarray(from, parts[i + 1]));
  return { id: id!, seed: seed!, point: point! };
}

/** The public key of a secret one, as one line. */
export function publicKeyOf(secret: string): string {
  const { id, point } = parseSecret(secret);
  return publicLine(id, point);
}

/**
 * The text of a file's `.minisig`.
 * @param comment one line, which is signed too
 */
export async function sign(file: Uint8Array, secret: string, comment: string): Promise<string> {
  const { id, seed } = parseSecret(secret);
  const key = await crypto.subtle.importKey("pkcs8", Buffer.concat([PKCS8, seed]), "Ed25519", false, ["sign"]);
  const signed = async (data: Uint8Array<ArrayBuffer>): Promise<Buffer> =>
    Buffer.from(await crypto.subtle.sign("Ed25519", key, data));
  const own = await signed(hashOf(file));
  const over = await signed(Buffer.concat([own, Buffer.from(comment)]));
  const first = Buffer.concat([Buffer.from("ED"), id, own]).toString("base64");
  const lines = ["untrusted comment: signature of a release of Hearth", first, `trusted comment: ${comment}`];
  return `${[...lines, over.toString("base64")].join("\n")}\n`;
}
