import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { Webhooks } from "@octokit/webhooks";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { hooksSchema, type SignatureConfig } from "../../../../../src/gateway/hooks/config.ts";
import {
  credentialHeaders,
  signatureSchemes,
  signRequest,
  verifySignature,
  type SignedRequest,
} from "../../../../../src/gateway/hooks/ingress/signatures/index.ts";
import { anyCharacter } from "../../../../characters.ts";

const NOW = 1_614_265_330_000;
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function config(auth: object): SignatureConfig {
  return hooksSchema.parse({ mappings: [{ auth }] }).mappings[0]!.auth!;
}

const request = (body: string, headers: Record<string, string>, more: Partial<SignedRequest> = {}): SignedRequest => ({
  rawBody: bytes(body),
  headers,
  url: "https://hooks.example/hooks/x",
  method: "POST",
  nowMs: NOW,
  ...more,
});

describe("vectors of the providers' own libraries", () => {
  test("standard webhooks", () => {
    const body = '{"test": 2432232314}';
    const signature = new Webhook(SECRET).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", new Date(NOW), body);
    expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    const headers = {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": String(NOW / 1000),
      "webhook-signature": `v1,AAAA v2,BBBB ${signature}`,
    };
    const settings = config({ scheme: "standard-webhooks", secrets: SECRET });
    expect(verifySignature(settings, request(body, headers))).toEqual({
      ok: true,
      deliveryId: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    });
    expect(verifySignature(settings, request(body.replace(" ", ""), headers))).toMatchObject({ ok: false });
  });

  test("github", async () => {
    const body = JSON.stringify({ action: "opened" });
    const signature = await new Webhooks({ secret: "s3cret" }).sign(body);
    const headers = { "x-hub-signature-256": signature, "x-github-delivery": "d-1" };
    const settings = config({ scheme: "github", secrets: "s3cret" });
    expect(verifySignature(settings, request(body, headers))).toEqual({ ok: true, deliveryId: "d-1" });
    expect(verifySignature(config({ scheme: "github", secrets: "other" }), request(body, headers)).ok).toBe(false);
    const known = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const documented = config({ scheme: "github", secrets: "It's a Secret to Everybody" });
    expect(verifySignature(documented, request("Hello, World!", { "x-hub-signature-256": known })).ok).toBe(true);
  });

  test("stripe", async () => {
    const payload = JSON.stringify({ id: "evt_1", type: "charge.succeeded" });
    const header = await Stripe.webhooks.generateTestHeaderStringAsync({
      payload,
      secret: "whsec_x",
      timestamp: NOW / 1000,
    });
    const settings = config({ scheme: "stripe", secrets: "whsec_x" });
    const verdict = verifySignature(settings, request(payload, { "stripe-signature": header }));
    expect(verdict).toEqual({ ok: true, deliveryId: "evt_1" });
  });
});

/** A receiver's settings, a sender's, and a body that both understand. */
function pairOf(scheme: SignatureConfig["scheme"]): {
  receiver: SignatureConfig;
  sender: SignatureConfig;
  body: string;
} {
  const body = JSON.stringify({ id: "evt_1", event_id: "Ev1", type: "t", webhookTimestamp: NOW, note: "é" });
  const pair = PAIRS[scheme];
  if (pair) {
    const form = scheme === "public-key" ? { header: "X-Sig", ...TIMED } : {};
    return {
      receiver: config({ scheme, ...form, secrets: pair.open }),
      sender: config({ scheme, ...form, secrets: pair.own }),
      body,
    };
  }
  const own = { hmac: { header: "X-Sig", prefix: "v=", idHeader: "X-Id", ...TIMED }, token: { header: "X-Secret" } };
  const secrets = scheme === "basic" ? "me:hunter2" : scheme === "teams" ? "c2VjcmV0LXNlY3JldC1zZWNyZXQ=" : SECRET;
  const both = config({ scheme, secrets, ...(own as Record<string, object>)[scheme] });
  return { receiver: both, sender: both, body };
}

const TIMED = { timestampHeader: "X-Time", signedContent: "{id}.{timestamp}.{body}" };
const ed25519 = generateKeyPairSync("ed25519");
const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" });
const der = ({ privateKey, publicKey }: { privateKey: KeyObject; publicKey: KeyObject }) => ({
  own: privateKey.export({ format: "der", type: "pkcs8" }),
  open: publicKey.export({ format: "der", type: "spki" }),
});
const bare = (encoding: "hex" | "base64") => ({
  own: der(ed25519).own.subarray(-32).toString(encoding),
  open: der(ed25519).open.subarray(-32).toString(encoding),
});
/** Keys of the schemes with key pairs, each in its sender's format. */
const PAIRS: Readonly<Record<string, { own: string; open: string }>> = {
  discord: bare("hex"),
  telnyx: bare("base64"),
  sendgrid: { own: der(p256).own.toString("base64"), open: der(p256).open.toString("base64") },
  "public-key": {
    own: p256.privateKey.export({ format: "pem", type: "pkcs8" }) as string,
    open: p256.publicKey.export({ format: "pem", type: "spki" }) as string,
  },
};

/** Their senders write the proof into the body, or sign the address: see below. */
const APART: readonly string[] = ["mailgun", "twilio"];
const schemes = (Object.keys(signatureSchemes) as SignatureConfig["scheme"][]).filter((each) => !APART.includes(each));
const untimed = "github gitea gitlab shopify sentry teams pagerduty telegram token basic".split(" ");
const timed = schemes.filter((scheme) => !untimed.includes(scheme));
const overBody = schemes.filter((scheme) => !["gitlab", "telegram", "token", "basic"].includes(scheme));

describe("every scheme", () => {
  test.each(schemes)("%s accepts a request that its sender signed", (scheme) => {
    const { receiver, sender, body } = pairOf(scheme);
    const headers = signRequest(sender, { ...request(body, {}), id: "del-1" });
    expect(verifySignature(receiver, request(body, headers))).toMatchObject({ ok: true });
  });

  test.each(schemes)("%s refuses another secret and a missing signature", (scheme) => {
    const { sender, body } = pairOf(scheme);
    const headers = signRequest(sender, { ...request(body, {}), id: "del-1" });
    const secrets = scheme === "discord" ? "00".repeat(32) : "whsec_AAAAAAAAAAAAAAAA";
    const other = {
      ...pairOf(scheme).receiver,
      secrets: [{ value: secrets, expiresAt: undefined }],
    } as SignatureConfig;
    expect(verifySignature(other, request(body, headers)).ok).toBe(false);
    expect(verifySignature(pairOf(scheme).receiver, request(body, {})).ok).toBe(false);
  });

  test.each(overBody)("%s refuses a flipped bit and reformatted JSON", (scheme) => {
    const { receiver, sender, body } = pairOf(scheme);
    const headers = signRequest(sender, { ...request(body, {}), id: "del-1" });
    const flipped = bytes(body);
    flipped[flipped.length - 3]! ^= 1;
    expect(verifySignature(receiver, { ...request("", headers), rawBody: flipped }).ok).toBe(false);
    const anew = JSON.stringify(JSON.parse(body), null, 1);
    expect(verifySignature(receiver, request(anew, headers)).ok).toBe(false);
  });

  test.each(timed)("%s refuses a time that is too old or in the future", (scheme) => {
    const { receiver, sender, body } = pairOf(scheme);
    const headers = signRequest(sender, { ...request(body, {}), id: "del-1" });
    const limit = scheme === "linear" ? 60_000 : 300_000;
    const at = (nowMs: number): boolean => verifySignature(receiver, request(body, headers, { nowMs })).ok;
    expect([at(NOW + limit), at(NOW + limit + 1000), at(NOW - limit), at(NOW - limit - 1000)]).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });

  test.each(schemes)("%s hides its signature from templates", (scheme) => {
    const { sender, body } = pairOf(scheme);
    const hidden = credentialHeaders(sender);
    const sent = signRequest(sender, { ...request(body, {}), id: "del-1" });
    expect(hidden.some((name) => name in sent)).toBe(true);
    for (const name of hidden) expect(name).toBe(name.toLowerCase());
  });

  test.each(schemes)("%s refuses random header values without throwing", (scheme) => {
    const { receiver, sender, body } = pairOf(scheme);
    const names = Object.keys(signRequest(sender, { ...request(body, {}), id: "del-1" }));
    fc.assert(
      fc.property(fc.array(fc.string({ unit: anyCharacter }), { minLength: 3, maxLength: 3 }), (values) => {
        const headers = Object.fromEntries(names.map((name, i) => [name, values[i % 3]!]));
        expect(verifySignature(receiver, request(body, headers)).ok).toBe(false);
      }),
      { numRuns: 200 },
    );
  });
});

describe("rotation", () => {
  const secrets = [{ value: "new-secret" }, { value: "old-secret", expiresAt: new Date(NOW + 60_000).toISOString() }];
  const settings = config({ scheme: "github", secrets });
  const signedBy = (secret: string) =>
    signRequest(config({ scheme: "github", secrets: secret }), { ...request("{}", {}), id: "1" });

  test("accepts both secrets until the old one expires", () => {
    expect(verifySignature(settings, request("{}", signedBy("new-secret"))).ok).toBe(true);
    expect(verifySignature(settings, request("{}", signedBy("old-secret"))).ok).toBe(true);
    expect(verifySignature(settings, request("{}", signedBy("old-secret"), { nowMs: NOW + 60_001 })).ok).toBe(false);
    expect(verifySignature(settings, request("{}", signedBy("new-secret"), { nowMs: NOW + 60_001 })).ok).toBe(true);
  });

  test("refuses every request once all secrets have expired", () => {
    const ended = config({ scheme: "gitlab", secrets: [{ value: "x", expiresAt: "2001-01-01T00:00:00Z" }] });
    expect(verifySignature(ended, request("{}", { "x-gitlab-token": "x" }))).toEqual({
      ok: false,
      reason: "every secret has expired",
    });
  });
});

test("standard webhooks: a public key verifies", () => {
  const { privateKey } = generateKeyPairSync("ed25519");
  const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32).toString("base64");
  const open = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
  const sender = config({ scheme: "svix", secrets: `whsk_${seed}` });
  const receiver = config({ scheme: "svix", secrets: `whpk_${open}` });
  const headers = signRequest(sender, { ...request("{}", {}), id: "m1" });
  expect(headers["svix-signature"]).toStartWith("v1a,");
  expect(verifySignature(receiver, request("{}", headers))).toEqual({ ok: true, deliveryId: "m1" });
  expect(verifySignature(receiver, request("{ }", headers)).ok).toBe(false);
});

test("a generic scheme may sign the method and the URL, in any encoding", () => {
  for (const encoding of ["hex", "base64", "base64url"]) {
    const auth = {
      scheme: "hmac",
      secrets: "k",
      header: "X-Sig",
      encoding,
      algorithm: "sha512",
      signedContent: "{method} {url} {nothing} {body}",
    };
    const settings = config(auth);
    const headers = signRequest(settings, { ...request("{}", {}), id: "" });
    expect(verifySignature(settings, request("{}", headers)).ok).toBe(true);
    expect(verifySignature(settings, request("{}", headers, { method: "PUT" })).ok).toBe(false);
  }
});

test("gitlab: an id shared by events is combined with the body, and a delivery's own id is used alone", () => {
  const settings = config({ scheme: "gitlab", secrets: "gitlab-secret" });
  const idOf = (body: string, more: Record<string, string>): unknown => {
    const verdict = verifySignature(settings, request(body, { "x-gitlab-token": "gitlab-secret", ...more }));
    return verdict.ok && verdict.deliveryId;
  };
  const shared = { "x-gitlab-event-uuid": "u1" };
  expect(idOf("{}", shared)).toBe(idOf("{}", shared));
  expect(idOf("{}", shared)).not.toBe(idOf("[]", shared));
  expect(idOf("{}", shared)).not.toBe(idOf("{}", { "x-gitlab-event-uuid": "u2" }));
  for (const body of ["{}", "[]"]) expect(idOf(body, { ...shared, "idempotency-key": "k1" })).toBe("k1");
});
