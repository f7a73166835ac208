/** Ed25519 keys as bare bytes, as webhook senders hand them out. */
import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";

/** DER headers of a public key and of a private one: RFC 8410. */
const SPKI = Buffer.from("302a300506032b6570032100", "hex");
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** @param bytes 32 bytes; undefined for any other input */
export function publicKeyOf(bytes: Uint8Array | undefined): KeyObject | undefined {
  if (bytes?.length !== 32) return undefined;
  return createPublicKey({ key: Buffer.concat([SPKI, bytes]), format: "der", type: "spki" });
}

/** @param seed 32 bytes */
export function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
}
