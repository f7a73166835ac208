import { describe, expect, test } from "bun:test";
import { gatewaySchema, hooksSchema, mappingSchema } from "../../../src/gateway/hooks/config.ts";

test("an empty section is off, with the documented defaults", () => {
  const config = hooksSchema.parse({});
  expect(config).toMatchObject({ enabled: false, path: "/hooks", maxBodyBytes: 262_144, allowQueryToken: true });
  expect(config.mappings).toEqual([]);
});

test("a mapping without settings is an agent action for every path", () => {
  expect(mappingSchema.parse({})).toMatchObject({
    match: {},
    action: "agent",
    wakeMode: "now",
    deliver: true,
    channel: "last",
    tools: [],
    allowUnsafeExternalContent: false,
  });
});

describe("the configuration refuses", () => {
  test.each([
    ["an unknown key", { tokn: "x" }],
    ["an unknown preset", { presets: ["gopher"] }],
    ["an empty token", { token: "  " }],
    ["a mapping with an unknown key", { mappings: [{ pathh: "x" }] }],
    ["a transform without a module", { mappings: [{ transform: {} }] }],
    ["a signature without a secret", { mappings: [{ auth: { scheme: "github" } }] }],
    ["a timeout of zero", { mappings: [{ timeoutSeconds: 0 }] }],
  ])("%s", (_, value) => {
    expect(hooksSchema.safeParse(value).success).toBe(false);
  });
});

test("the error of an incomplete signature comes from its scheme", () => {
  const read = hooksSchema.safeParse({ mappings: [{ auth: { scheme: "hmac", secrets: "x" } }] });
  expect(read.success ? [] : read.problems).toEqual([
    { path: ["mappings", 0, "auth", "header"], message: "required: expected a text that is not empty" },
  ]);
});

test("conditions may be nested", () => {
  const when = { all: [{ at: "headers.x", equals: "a" }, { not: { any: [{ at: "payload.b", exists: true }] } }] };
  expect(mappingSchema.parse({ match: { when } }).match.when).toEqual(when);
  expect(mappingSchema.safeParse({ match: { when: { all: [{ ät: 1 }] } } }).success).toBe(false);
});

test("trusted proxies are addresses or CIDR ranges", () => {
  expect(gatewaySchema.safeParse({ trustedProxies: ["127.0.0.1", "fd00::/8"] }).success).toBe(true);
  for (const text of ["proxy.example", "10.0.0.0/33", ""]) {
    expect(gatewaySchema.safeParse({ trustedProxies: [text] }).success).toBe(false);
  }
});

test.each([
  [{ presets: ["gihub"] }, 'presets.0: expected "mail", "github", .*; did you mean "github"\\?'],
  [{ mappings: [{ action: "agnet" }] }, 'mappings.0.action: .*did you mean "agent"\\?'],
  [{ mappings: [{ auth: { scheme: "githb", secrets: "x" } }] }, 'mappings.0.auth.scheme: .*did you mean "github"\\?'],
  [{ mappings: [{ handshake: "slak" }] }, 'mappings.0.handshake: .*did you mean "slack"\\?'],
])("the error of a misspelled word suggests the nearest one: %j", (hooks, message) => {
  expect(() => hooksSchema.parse(hooks)).toThrow(new RegExp(message));
});

test("the error of an unrecognized text does not repeat it, because it may be a secret", () => {
  expect(() => hooksSchema.parse({ presets: ["sk-secret-value"] })).toThrow(/got a text of 15 characters$/);
});

test.each([
  [{ status: 302 }, "response.status"],
  [{ status: 205 }, "response.status"],
  [{ status: 204, body: "x" }, "status 204 has no body"],
  [{ body: "x".repeat(20_000) }, "at most 16384 characters"],
  [{ body: [{ a: "x".repeat(20_000) }] }, "at most 16384 characters"],
  [{ contentType: "text/plain\r\nx: y" }, "response.contentType"],
  [{ text: "x" }, "response.text: unknown key"],
])("a response that cannot be sent is refused: %j", (response, message) => {
  expect(() => mappingSchema.parse({ response })).toThrow(message);
});
