/** Signatures as their senders write them: vectors of the senders' own libraries, and headers with several values. */
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { hooksSchema, type SignatureConfig } from "../../../../../src/gateway/hooks/config.ts";
import { secretsOf } from "../../../../../src/gateway/hooks/secrets.ts";
import {
  signRequest,
  verifySignature,
  type SignedRequest,
} from "../../../../../src/gateway/hooks/ingress/signatures/index.ts";

const NOW = 1_614_265_330_000;
const SECONDS = String(NOW / 1000);

const config = (auth: object): SignatureConfig => hooksSchema.parse({ mappings: [{ auth }] }).mappings[0]!.auth!;
const request = (
  body: string,
  headers: Record<string, string> = {},
  more: Partial<SignedRequest> = {},
): SignedRequest => ({
  rawBody: new TextEncoder().encode(body),
  headers,
  url: "https://hooks.example/hooks/x",
  method: "POST",
  nowMs: NOW,
  ...more,
});
const isRight = (auth: object, ...asked: Parameters<typeof request>): boolean =>
  verifySignature(config(auth), request(...asked)).ok;
const hmac = (key: string | Uint8Array, content: string, encoding: "hex" | "base64" = "hex"): string =>
  createHmac("sha256", key).update(content).digest(encoding);
const idOf = (auth: object, ...asked: Parameters<typeof request>): string | undefined => {
  const verdict = verifySignature(config(auth), request(...asked));
  return verdict.ok ? verdict.deliveryId : expect.unreachable(verdict.reason);
};

describe("twilio", () => {
  const auth = { scheme: "twilio", secrets: "12345" };
  const url = "https://mycompany.com/myapp.php?foo=1&bar=2";
  const type = { "content-type": "application/x-www-form-urlencoded" };
  const form = "To=%2B18005551212&From=%2B14158675309&Digits=1234&CallSid=CA1234567890ABCDE&Caller=%2B14158675309";
  const signature = { "x-twilio-signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8=", ...type };

  test("verifies a form in any order of its fields", () => {
    expect(isRight(auth, form, signature, { url })).toBe(true);
    expect(isRight(auth, form.split("&").toReversed().join("&"), signature, { url })).toBe(true);
    expect(isRight(auth, form.replace("1234", "1235"), signature, { url })).toBe(false);
    expect(isRight(auth, `${form}&More=1`, signature, { url })).toBe(false);
    expect(isRight(auth, form, signature, { url: url.replace("foo=1", "foo=2") })).toBe(false);
  });

  test("verifies the public address behind a proxy", () => {
    const inside = { url: "http://127.0.0.1:11434/hooks/twilio?foo=1&bar=2" };
    expect(isRight(auth, form, signature, inside)).toBe(false);
    const publicUrl = "https://mycompany.com/myapp.php";
    expect(isRight({ ...auth, publicUrl }, form, signature, inside)).toBe(true);
    const samePath = { url: "http://127.0.0.1:11434/myapp.php?foo=1&bar=2" };
    expect(isRight({ ...auth, publicUrl: "https://mycompany.com" }, form, signature, samePath)).toBe(true);
  });

  test("verifies JSON through its digest in the address", () => {
    const body = '{"property": "value", "boolean": true}';
    const withDigest = `${url}&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620`;
    const headers = { "x-twilio-signature": "a9nBmqA0ju/hNViExpshrM61xv4=", "content-type": "application/json" };
    expect(isRight(auth, body, headers, { url: withDigest })).toBe(true);
    expect(isRight(auth, body.replace("value", "other"), headers, { url: withDigest })).toBe(false);
    expect(isRight(auth, body, { ...signature, "content-type": "application/json" }, { url })).toBe(false);
    expect(isRight(auth, body, { "x-twilio-signature": signature["x-twilio-signature"] }, { url })).toBe(false);
  });

  test("verifies each value of a repeated field", () => {
    const content = "https://hooks.example/hooks/xa1a2b";
    const right = createHmac("sha1", "12345").update(content).digest("base64");
    expect(isRight(auth, "b=&a=2&a=1", { ...type, "x-twilio-signature": right })).toBe(true);
  });
});

test("sendgrid: ECDSA over the time and the body verifies", () => {
  const secrets =
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==";
  const signature = "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=";
  const body =
    '[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":' +
    '"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1' +
    '-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>",' +
    '"timestamp":1600112492}]\r\n';
  const headers = {
    "x-twilio-email-event-webhook-signature": signature,
    "x-twilio-email-event-webhook-timestamp": "1600112502",
  };
  const at = { nowMs: 1_600_112_502_000 };
  expect(isRight({ scheme: "sendgrid", secrets }, body, headers, at)).toBe(true);
  expect(isRight({ scheme: "sendgrid", secrets }, body.trim(), headers, at)).toBe(false);
  expect(isRight({ scheme: "sendgrid", secrets }, body, headers)).toBe(false); // the signature of another day
});

describe("a header with several values", () => {
  const right = hmac("new", "{}");
  const wrong = hmac("old", "{}");
  const pagerduty = { scheme: "pagerduty", secrets: "new" };
  const asHmac = { scheme: "hmac", secrets: "new", header: "X-PagerDuty-Signature", prefix: "v1=" };
  test.each([
    `v1=${right}`,
    `v1=${wrong},v1=${right}`,
    `v1=${right},v1=${wrong}`,
    `v1=${wrong}, v1=${right}`,
    `v0=zz,v2=${wrong};v1=${right} v3`,
    `v1="${right}"`,
    `v1=,,v1=nohex,v1=${right}`,
  ])("verifies %s", (value) => {
    for (const auth of [pagerduty, asHmac]) expect(isRight(auth, "{}", { "x-pagerduty-signature": value })).toBe(true);
  });
  test.each([`v2=${right}`, right, `v1=${wrong}`, "", ",", "v1=", `v1=${right}00`])("does not verify %s", (value) => {
    for (const auth of [pagerduty, asHmac]) expect(isRight(auth, "{}", { "x-pagerduty-signature": value })).toBe(false);
  });

  test("verifies a prefix with a comma, as in Standard Webhooks", () => {
    const auth = { scheme: "hmac", secrets: "new", header: "X-Sig", prefix: "v1,", encoding: "base64" };
    const signature = hmac("new", "{}", "base64");
    expect(isRight(auth, "{}", { "x-sig": `v1a,AAAA v1,BBBB v1,${signature}` })).toBe(true);
    expect(isRight(auth, "{}", { "x-sig": `v1a,${signature}` })).toBe(false);
  });

  test("verifies two headers for two keys", () => {
    const auth = { scheme: "hmac", secrets: "new", header: ["X-Primary", "X-Secondary"] };
    expect(isRight(auth, "{}", { "x-primary": wrong, "x-secondary": right })).toBe(true);
    expect(isRight(auth, "{}", { "x-primary": wrong })).toBe(false);
  });
});

describe("a time beside the signature", () => {
  const content = `${SECONDS}.{}`;
  const mux = { scheme: "mux", secrets: "k" };
  test("may have any name and separator", () => {
    const own = (form: object) => ({ scheme: "hmac", secrets: "k", header: "X-S", ...form });
    expect(isRight(mux, "{}", { "mux-signature": `t=${SECONDS},v1=${hmac("k", content)}` })).toBe(true);
    const workos = { "workos-signature": `t=${NOW}, v1=${hmac("k", `${NOW}.{}`)}` };
    expect(isRight({ scheme: "workos", secrets: "k" }, "{}", workos)).toBe(true);
    const paddle = { "paddle-signature": `ts=${SECONDS};h1=${hmac("k", `${SECONDS}:{}`)}` };
    expect(isRight({ scheme: "paddle", secrets: "k" }, "{}", paddle)).toBe(true);
    const buildkite = own({ prefix: "signature=", timestampPrefix: "timestamp=", signedContent: "{timestamp}.{body}" });
    const value = `timestamp=${SECONDS},signature=${hmac("k", content)}`;
    expect(isRight(buildkite, "{}", { "x-s": value })).toBe(true);
    expect(isRight(buildkite, "{}", { "x-s": value.replace("timestamp=", "time=") })).toBe(false);
  });

  test("is refused if it is too old or missing", () => {
    const value = `t=${SECONDS},v1=${hmac("k", content)}`;
    expect(isRight(mux, "{}", { "mux-signature": value }, { nowMs: NOW + 301_000 })).toBe(false);
    expect(isRight({ ...mux, toleranceSeconds: 600 }, "{}", { "mux-signature": value }, { nowMs: NOW + 301_000 })).toBe(
      true,
    );
    expect(isRight(mux, "{}", { "mux-signature": `v1=${hmac("k", ".{}")}` })).toBe(false);
  });

  test("may be ISO 8601", () => {
    const form = { timestampHeader: "X-Time", timestampUnit: "iso", signedContent: "{timestamp}{body}" };
    const auth = { scheme: "hmac", secrets: "k", header: "X-S", ...form };
    const time = new Date(NOW).toISOString();
    const headers = (text: string) => ({ "x-time": text, "x-s": hmac("k", `${text}{}`) });
    expect(isRight(auth, "{}", headers(time))).toBe(true);
    expect(isRight(auth, "{}", headers(time.replace("Z", "123456Z")))).toBe(true);
    for (const text of ["2021-02-25", "yesterday", String(NOW), "2011-02-25T15:02:10Z"]) {
      expect(isRight(auth, "{}", headers(text))).toBe(false);
    }
  });

  test("and the signed content identify a delivery without an id", () => {
    const body = '{"type":"x"}';
    const signed = (text: string, time = SECONDS) => ({
      "mux-signature": `t=${time},v1=${hmac("k", `${time}.${text}`)}`,
    });
    expect(idOf(mux, '{"id":"e1"}', signed('{"id":"e1"}'))).toBe("e1");
    expect(idOf(mux, body, signed(body))).toMatch(/^signed:/);
    expect(idOf(mux, body, signed(body))).toBe(idOf(mux, body, signed(body)));
    expect(idOf(mux, body, signed(body))).not.toBe(idOf(mux, body, signed(body, String(NOW / 1000 + 1))));
  });
});

describe("a signature in the body", () => {
  const auth = { scheme: "mailgun", secrets: "key-1" };
  const token = "a8ce0edb2dd8301dee6c2405235584e45aa91d1e9f979f3de0";
  const signature = hmac("key-1", SECONDS + token);
  const fields = { timestamp: SECONDS, token, signature };
  test("may come in JSON and in both kinds of forms", () => {
    expect(idOf(auth, JSON.stringify({ signature: fields, "event-data": {} }))).toBe(token);
    const form = new URLSearchParams({ subject: "Hi", ...fields }).toString();
    expect(idOf(auth, form, { "content-type": "application/x-www-form-urlencoded" })).toBe(token);
    const parts = Object.entries({ subject: "Hi", ...fields }).map(
      ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    );
    const multipart = { "content-type": 'multipart/form-data; boundary="b"' };
    expect(idOf(auth, `${parts.join("")}--b--\r\n`, multipart)).toBe(token);
  });
  const multipart = { "content-type": "multipart/form-data; boundary=b" };
  const part = (head: string, value: string): string => `--b\r\n${head}\r\n\r\n${value}\r\n`;
  test("is found in a form whose mail quotes a form", () => {
    const quoted = 'Look:\r\nContent-Disposition: form-data; name="token"\r\n\r\nfalse\r\n';
    const parts = Object.entries({ "body-plain": quoted, ...fields }).map(([name, value]) =>
      part(`Content-Disposition: form-data; name="${name}"`, value),
    );
    expect(idOf(auth, `${parts.join("")}--b--\r\n`, multipart)).toBe(token);
  });
  test("is found with other header orders, unquoted names and further parameters", () => {
    const body = [
      part("Content-Type: text/plain\r\ncontent-disposition: form-data;name=timestamp", SECONDS),
      part('Content-Disposition: form-data; name="token"; x=1', token),
      part('Content-Disposition: form-data; filename="a"; name="signature"\r\nContent-Length: 64', signature),
    ];
    expect(idOf(auth, `${body.join("")}--b--\r\n`, multipart)).toBe(token);
  });
  test.each([
    ["another token", { ...fields, token: "b" }],
    ["another time", { ...fields, timestamp: String(NOW / 1000 + 1) }],
    ["an old time", { ...fields, timestamp: "1", signature: hmac("key-1", `1${token}`) }],
    ["no signature", { ...fields, signature: undefined }],
    ["a signature that is not text", { ...fields, signature: { a: 1 } }],
    ["no token", { timestamp: SECONDS, signature: hmac("key-1", SECONDS), token: undefined }],
  ])("is refused with %s", (name, given) => {
    // without a token the content is only the time, which its sender did sign
    expect(isRight(auth, JSON.stringify({ signature: given }))).toBe(name === "no token");
  });
  test.each(["", "no json", "[]", "null", "{".repeat(100_000)])("is not found in a body without fields: %#", (body) => {
    expect(isRight(auth, body)).toBe(false);
    expect(isRight(auth, body, { "content-type": "multipart/form-data" })).toBe(false);
    expect(isRight(auth, body, { "content-type": "multipart/form-data; boundary=b" })).toBe(false);
  });
  test("cannot be made as headers", () => {
    expect(() => signRequest(config(auth), { ...request("{}"), id: "1" })).toThrow("into the body");
  });
});

describe("the key of a signature", () => {
  test("teams: is decoded from base64", () => {
    const key = Buffer.from("0123456789abcdef0123456789abcdef");
    const auth = { scheme: "teams", secrets: key.toString("base64") };
    const body = '{"type":"message","id":"1700"}';
    const headers = { authorization: `HMAC ${hmac(key, body, "base64")}` };
    expect(idOf(auth, body, headers)).toBe("1700");
    expect(isRight(auth, body, { authorization: `HMAC ${hmac(auth.secrets, body, "base64")}` })).toBe(false);
    expect(isRight(auth, body, { authorization: `Bearer ${hmac(key, body, "base64")}` })).toBe(false);
  });

  test("hmac: may be text, hexadecimal digits or base64", () => {
    const key = Buffer.from("0123456789abcdef");
    const headers = { "x-s": hmac(key, "{}") };
    const own = (keyEncoding: string, secrets: string) => ({ scheme: "hmac", header: "X-S", secrets, keyEncoding });
    expect(isRight(own("hex", key.toString("hex")), "{}", headers)).toBe(true);
    expect(isRight(own("base64", key.toString("base64")), "{}", headers)).toBe(true);
    expect(isRight(own("text", key.toString()), "{}", headers)).toBe(true);
    expect(isRight(own("text", key.toString("hex")), "{}", headers)).toBe(false);
  });

  const verdicts = (auth: object) =>
    secretsOf(hooksSchema.parse({ mappings: [{ auth }] })).map(({ verdict }) =>
      verdict.ok ? verdict.keyBytes : verdict.expected,
    );
  test("is checked when the file is read, and has the length of its decoded bytes", () => {
    const own = (more: object) => ({ scheme: "hmac", header: "X-S", ...more });
    expect(verdicts(own({ secrets: "no base64!", keyEncoding: "base64" }))).toEqual(["a key in base64"]);
    expect(verdicts(own({ secrets: "abc", keyEncoding: "hex" }))).toEqual(["a key in hexadecimal digits"]);
    expect(verdicts(own({ secrets: "AAAA", keyEncoding: "base64" }))).toEqual([3]);
    expect(verdicts({ scheme: "teams", secrets: "not base64 at all" })).toEqual(["a key in base64"]);
    expect(verdicts({ scheme: "basic", secrets: "nobody" })).toEqual(["a user and a password, as user:password"]);
    expect(verdicts({ scheme: "basic", secrets: "me:pass:word" })).toEqual([9]);
    for (const secrets of ["x", "AAAA", "-----BEGIN PUBLIC KEY-----", "00".repeat(31)]) {
      expect(verdicts({ scheme: "sendgrid", secrets })).toEqual([expect.stringContaining("a public key: PEM")]);
    }
  });

  test("public-key: determines the algorithm, and ECDSA may be DER or P1363", () => {
    const auth = (secrets: string) => ({ scheme: "public-key", secrets, header: "X-S", encoding: "base64" });
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const ed = generateKeyPairSync("ed25519");
    for (const { privateKey, publicKey } of [rsa, ec, ed]) {
      const pem = publicKey.export({ format: "pem", type: "spki" }) as string;
      const digest = privateKey.asymmetricKeyType === "ed25519" ? null : "sha256";
      const signature = sign(digest, Buffer.from("{}"), privateKey).toString("base64");
      expect(isRight(auth(pem), "{}", { "x-s": signature })).toBe(true);
      expect(isRight(auth(pem), "{ }", { "x-s": signature })).toBe(false);
      expect(isRight(auth(pem), "{}", { "x-s": "AAAA" })).toBe(false);
    }
    const pem = ec.publicKey.export({ format: "pem", type: "spki" }) as string;
    const flat = sign("sha256", Buffer.from("{}"), { key: ec.privateKey, dsaEncoding: "ieee-p1363" });
    expect(isRight(auth(pem), "{}", { "x-s": flat.toString("base64") })).toBe(true);
    const x25519 = generateKeyPairSync("x25519").publicKey.export({ format: "pem", type: "spki" }) as string;
    expect(verdicts(auth(x25519))).toEqual([expect.stringContaining("a public key")]);
  });
});

describe("a plain secret", () => {
  test("may be telegram's header", () => {
    const auth = { scheme: "telegram", secrets: "s3cret" };
    const header = "x-telegram-bot-api-secret-token";
    expect(idOf(auth, '{"update_id":7}', { [header]: "s3cret" })).toBe("7");
    for (const value of ["s3cre", "s3crets", "", "S3cret"])
      expect(isRight(auth, "{}", { [header]: value })).toBe(false);
    expect(isRight(auth, "{}")).toBe(false);
  });
  test("may be in any header behind a prefix", () => {
    const auth = { scheme: "token", secrets: "s3cret", header: "X-Okta", prefix: "Key " };
    expect(isRight(auth, "{}", { "x-okta": "Key s3cret" })).toBe(true);
    expect(isRight(auth, "{}", { "x-okta": "s3cret" })).toBe(false);
  });
  test("may be HTTP Basic", () => {
    const auth = { scheme: "basic", secrets: ["me:pä:ss", "you:x"] };
    const header = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
    expect(isRight(auth, "{}", header("me:pä:ss"))).toBe(true);
    expect(isRight(auth, "{}", header("you:x"))).toBe(true);
    for (const text of ["me:x", "you:pä:ss", "me", ""]) expect(isRight(auth, "{}", header(text))).toBe(false);
    expect(isRight(auth, "{}", { authorization: "Bearer me:pä:ss" })).toBe(false);
  });
});

test("svix and Standard Webhooks each accept the other's headers", () => {
  for (const [one, other] of [
    ["svix", "standard-webhooks"],
    ["standard-webhooks", "svix"],
  ] as const) {
    const auth = (scheme: string) => config({ scheme, secrets: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" });
    const headers = signRequest(auth(one), { ...request("{}"), id: "m1" });
    expect(verifySignature(auth(other), request("{}", headers))).toEqual({ ok: true, deliveryId: "m1" });
    const both = { ...headers, ...signRequest(auth(other), { ...request("{}"), id: "m1" }) };
    expect(verifySignature(auth(other), request("{}", both))).toEqual({ ok: true, deliveryId: "m1" });
    const mixed = Object.fromEntries(Object.entries(headers).slice(0, 2));
    expect(verifySignature(auth(other), request("{}", mixed)).ok).toBe(false);
  }
});

test.each<[object, string, string]>([
  [{ header: "X-S", signatureField: "s" }, "signatureField", "either this or header"],
  [{ header: "X-S", timestampHeader: "T", timestampField: "t" }, "timestampField", "either this or timestampHeader"],
  [{ header: "X-S", idHeader: "T", idField: "t" }, "idField", "either this or idHeader"],
  [{ signatureField: "s", timestampPrefix: "t=" }, "timestampPrefix", "header is not set"],
  [{ header: "X-S", keyEncoding: "base32" }, "keyEncoding", "expected"],
  [{ header: "X-S", publicUrl: "hooks.example" }, "publicUrl", "URL"],
])("%j is refused", (form, key, message) => {
  const read = hooksSchema.safeParse({ mappings: [{ auth: { scheme: "hmac", secrets: "x", ...form } }] });
  const problems = read.success ? [] : read.problems;
  expect(problems).toEqual([{ path: ["mappings", 0, "auth", key], message: expect.stringContaining(message) }]);
});
