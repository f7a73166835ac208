/** Makes and checks signatures, with a shared key or a key pair. */
import { createHmac, createPrivateKey, createPublicKey, sign, verify, type KeyObject } from "node:crypto";
import { privateKeyOf, publicKeyOf } from "./ed25519.ts";
import type { Content, SignatureForm } from "./form.ts";
import { anyEqual, fromBase64, fromHex, type KeySide, type SecretVerdict } from "./scheme.ts";

export interface KeyKind {
  check(secret: string, side: KeySide, form: SignatureForm): SecretVerdict;
  /** True if one of the signatures fits one of the secrets. */
  matches(form: SignatureForm, secrets: readonly string[], signed: Signed): boolean;
  sign(form: SignatureForm, secret: string, content: Content): Buffer;
}

export interface Signed {
  readonly signatures: readonly Uint8Array[];
  readonly content: Content;
}

function keyBytes(secret: string, { keyEncoding }: SignatureForm): Uint8Array | undefined {
  if (keyEncoding === "text") return new TextEncoder().encode(secret);
  return keyEncoding === "hex" ? fromHex(secret) : fromBase64(secret);
}

function hmac({ algorithm }: SignatureForm, key: Uint8Array, content: Content): Buffer {
  const hash = createHmac(algorithm, key);
  for (const piece of content) hash.update(piece);
  return hash.digest();
}

export const sharedKey: KeyKind = {
  check(secret, _side, form) {
    const key = keyBytes(secret, form);
    if (key && key.length > 0) return { ok: true, keyBytes: key.length };
    return { ok: false, expected: form.keyEncoding === "hex" ? "a key in hexadecimal digits" : "a key in base64" };
  },
  matches(form, secrets, { signatures, content }) {
    const keys = secrets.map((secret) => keyBytes(secret, form)).filter((key) => key !== undefined);
    return anyEqual(
      signatures,
      keys.map((key) => hmac(form, key, content)),
    );
  },
  sign: (form, secret, content) => hmac(form, keyBytes(secret, form) ?? new Uint8Array(), content),
};

const FORMS = "PEM, base64 of its DER form, or the 32 bytes of an Ed25519 key in hexadecimal digits or base64";
const KEY_TYPES: readonly (string | undefined)[] = ["ec", "ed25519", "rsa"];

/** The bytes of a key that is not PEM; only a bare Ed25519 key may be hexadecimal. */
const bytesOf = (text: string): Uint8Array | undefined =>
  /^[0-9a-f]{64}$/i.test(text) ? fromHex(text) : fromBase64(text.replace(/\s/g, ""));

/** Undefined: not a key in any known format. */
function readKey(text: string, isPublic: boolean): KeyObject | undefined {
  try {
    const key = text.startsWith("-----") ? fromPem(text, isPublic) : fromBytes(bytesOf(text), isPublic);
    return KEY_TYPES.includes(key?.asymmetricKeyType) ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Environment variables may have `\n` instead of line breaks. */
function fromPem(text: string, isPublic: boolean): KeyObject {
  const pem = text.replaceAll("\\n", "\n");
  if (isPublic && pem.includes("PRIVATE KEY")) throw new Error("the other half of the pair");
  return isPublic ? createPublicKey(pem) : createPrivateKey(pem);
}

function fromBytes(bytes: Uint8Array | undefined, isPublic: boolean): KeyObject | undefined {
  if (!bytes) return undefined;
  if (bytes.length === 32) return isPublic ? publicKeyOf(bytes) : privateKeyOf(bytes);
  const key = Buffer.from(bytes);
  return isPublic
    ? createPublicKey({ key, format: "der", type: "spki" })
    : createPrivateKey({ key, format: "der", type: "pkcs8" });
}

/** Ed25519 includes its own digest. */
const digestFor = (key: KeyObject, { algorithm }: SignatureForm): string | null =>
  key.asymmetricKeyType === "ed25519" ? null : algorithm;

const whole = (content: Content): Buffer =>
  Buffer.concat(content.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)));

/** An ECDSA signature is DER, or for P-256 its two integers concatenated. */
function isSignedBy(key: KeyObject, form: SignatureForm, data: Buffer, signature: Uint8Array): boolean {
  const encodings =
    key.asymmetricKeyType === "ec" && signature.length === 64 ? (["der", "ieee-p1363"] as const) : (["der"] as const);
  return encodings.some((dsaEncoding) => {
    try {
      return verify(digestFor(key, form), data, { key, dsaEncoding }, signature);
    } catch {
      return false; // the signature's format does not fit
    }
  });
}

export const keyPair: KeyKind = {
  check(secret, side) {
    if (readKey(secret, side === "receiver")) return { ok: true };
    return { ok: false, expected: `a ${side === "receiver" ? "public" : "private"} key: ${FORMS}` };
  },
  matches(form, secrets, { signatures, content }) {
    const data = whole(content);
    const keys = secrets.map((secret) => readKey(secret, true)).filter((key) => key !== undefined);
    return keys.some((key) => signatures.some((signature) => isSignedBy(key, form, data, signature)));
  },
  sign(form, secret, content) {
    const key = readKey(secret, false);
    return key ? sign(digestFor(key, form), whole(content), key) : Buffer.alloc(0);
  },
};
