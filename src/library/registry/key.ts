/**
 * The key that identifies us to registries: ed25519, in OpenSSH's private key format without a passphrase (PROTOCOL.key
 * in OpenSSH), so that keys can be copied between programs.
 */
import { createPrivateKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../../base/index.ts";
import { makePrivate, writeDurably } from "../../base/system.ts";

const KEY_TYPE = "ssh-ed25519";
const MAGIC = "openssh-key-v1\0";
const KEY_BYTES_MAX = 64 * 1024; // an ed25519 key has 400
const SEED_BYTES = 32;
/** Prefix of the 32-byte seed in PKCS #8 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END = "-----END OPENSSH PRIVATE KEY-----";

export interface RegistryKey {
  /** The public key as SSH sends it, in base64. */
  readonly publicKey: string;
  /** Base64 of the ed25519 signature of a text. */
  sign(text: string): string;
}

const keyPath = (home: string): string => join(home, "id_ed25519");

/**
 * Creates the key and its public half if missing; never changes an existing key. Throws `storage`, and `bad_file` if
 * the existing file is not such a key.
 */
export async function ensureKey(home: string): Promise<void> {
  const path = keyPath(home);
  const isThere = await stat(path).then(
    () => true,
    () => false,
  );
  if (!isThere) {
    const text = encodeKey(generateSeed());
    await writeDurably(path, async (temporary) => {
      await writeFile(temporary, text, { mode: 0o600 });
      makePrivate(temporary);
    });
  }
  const line = `${KEY_TYPE} ${(await readKey(home)).publicKey}\n`;
  const publicPath = `${path}.pub`;
  const found = await readFile(publicPath, "utf8").catch(() => "");
  if (found.split(" ")[1]?.trim() === line.split(" ")[1]?.trim()) return; // its comment may differ
  await writeDurably(publicPath, (temporary) => writeFile(temporary, line, { mode: 0o644 }));
}

/** Throws `bad_file` naming the file. */
export async function readKey(home: string): Promise<RegistryKey> {
  const path = keyPath(home);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new AppError("bad_file", `${path}: cannot read the key: ${messageOf(error)}`, { cause: error });
  });
  return parseKey(text, path);
}

/** @param path names the key in errors. Throws `bad_file`. */
export function parseKey(text: string, path: string): RegistryKey {
  const bad = (expected: string): AppError => new AppError("bad_file", `${path}: expected ${expected}`);
  const body = text.length <= KEY_BYTES_MAX ? text.trim() : "";
  if (!body.startsWith(BEGIN) || !body.endsWith(END)) throw bad("an OpenSSH private key");
  const bytes = Buffer.from(body.slice(BEGIN.length, -END.length), "base64");
  if (bytes.toString("latin1", 0, MAGIC.length) !== MAGIC) throw bad("an OpenSSH private key");
  const read = makeReader(bytes.subarray(MAGIC.length), () => bad("a whole OpenSSH private key"));
  if (read.text() !== "none") throw bad("a key without a passphrase");
  read.string(); // name and options of the key derivation, unused without a passphrase
  read.string();
  if (read.uint32() !== 1) throw bad("one key in the file");
  read.string(); // the public key, which follows from the private one
  const inner = makeReader(read.string(), () => bad("a whole OpenSSH private key"));
  if (inner.uint32() !== inner.uint32()) throw bad("a whole OpenSSH private key");
  const type = inner.text();
  if (type !== KEY_TYPE) throw bad(`a key of type ${KEY_TYPE}, got ${JSON.stringify(type.slice(0, 40))}`);
  const publicKey = inner.string();
  const secret = inner.string();
  if (publicKey.length !== 32 || secret.length !== 64 || !secret.subarray(SEED_BYTES).equals(publicKey)) {
    throw bad("a key whose halves belong together");
  }
  return keyOf(privateKeyOf(secret.subarray(0, SEED_BYTES)), publicKey);
}

function keyOf(key: KeyObject, publicKey: Uint8Array): RegistryKey {
  return {
    publicKey: wirePublicKey(publicKey).toString("base64"),
    sign: (text) => sign(null, Buffer.from(text), key).toString("base64"),
  };
}

const privateKeyOf = (seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });

const wirePublicKey = (publicKey: Uint8Array): Buffer => Buffer.concat([field(KEY_TYPE), field(publicKey)]);

interface Pair {
  readonly seed: Buffer;
  readonly publicKey: Buffer;
}

function generateSeed(): Pair {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return {
    seed: privateKey.export({ format: "der", type: "pkcs8" }).subarray(-SEED_BYTES),
    publicKey: publicKey.export({ format: "der", type: "spki" }).subarray(-SEED_BYTES),
  };
}

function encodeKey({ seed, publicKey }: Pair): string {
  const check = Buffer.from(crypto.getRandomValues(new Uint8Array(4)));
  const inner = Buffer.concat([
    check,
    check,
    field(KEY_TYPE),
    field(publicKey),
    field(Buffer.concat([seed, publicKey])),
    field(""), // no comment: it would name this machine and its user
  ]);
  const padding = Buffer.from(Array.from({ length: (8 - (inner.length % 8)) % 8 }, (_, i) => i + 1));
  const bytes = Buffer.concat([
    Buffer.from(MAGIC, "latin1"),
    field("none"),
    field("none"),
    field(""),
    uint32(1),
    field(wirePublicKey(publicKey)),
    field(Buffer.concat([inner, padding])),
  ]);
  const lines = bytes.toString("base64").match(/.{1,70}/g) ?? [];
  return `${[BEGIN, ...lines, END].join("\n")}\n`;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Length, then bytes. */
function field(content: string | Uint8Array): Buffer {
  const bytes = Buffer.from(content as Uint8Array); // Buffer.from accepts either type
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function makeReader(bytes: Buffer, tooShort: () => AppError) {
  let at = 0;
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw tooShort();
    at += length;
    return bytes.subarray(at - length, at);
  };
  const string = (): Buffer => take(take(4).readUInt32BE());
  return { uint32: () => take(4).readUInt32BE(), string, text: () => string().toString("latin1") };
}
