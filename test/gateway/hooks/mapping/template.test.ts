import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../../src/base/errors.ts";
import { plain } from "../../../../src/gateway/agent/boundary/tainted-text.ts";
import type { SignatureConfig } from "../../../../src/gateway/hooks/config.ts";
import { makeTemplate, plainText } from "../../../../src/gateway/hooks/mapping/template.ts";
import type { View } from "../../../../src/gateway/hooks/mapping/request.ts";
import { makeView } from "./view.ts";

const show = (source: string, view: View, missing: "empty" | "keep" | "error" = "empty"): string =>
  plainText(makeTemplate(source, { missing })(view));

const view = makeView({
  path: "/a/b/",
  query: { q: "1", token: "hook-secret" },
  headers: { "X-Event": "push", authorization: "Bearer hook-secret" },
  payload: {
    name: "Ada",
    path: "shadowed",
    count: 3,
    flag: false,
    none: null,
    empty: "",
    list: [{ id: 7 }, { id: 8 }],
    labels: { "a.b": "dotted", "x y": "blank" },
    nested: { deep: { er: "here" } },
    at: 1_767_323_045,
    encoded: Buffer.from('{"historyId":7,"n":"ö"}').toString("base64"),
    encoded_url: Buffer.from('{"historyId":7,"n":"ö"}').toString("base64url"),
    bytes: "/////w==",
    html: `<a href="x">&'`,
  },
});

describe("a tag shows a value:", () => {
  test.each([
    ["{{name}}", "Ada"],
    ["{{ name }}", "Ada"],
    ["{{payload.name}}", "Ada"],
    ["{{path}}", "a/b"],
    ["{{payload.path}}", "shadowed"],
    ["{{now}}", "2026-01-02T03:04:05.000Z"],
    ["{{query.q}}", "1"],
    ["{{headers.X-EVENT}}", "push"],
    ["{{headers['x-event']}}", "push"],
    ["{{list[1].id}}", "8"],
    ["{{list.0.id}}", "7"],
    ["{{list.length}}", "2"],
    ['{{labels["a.b"]}}', "dotted"],
    ["{{labels['x y']}} {{labels.x y}}", "blank blank"],
    ["{{nested.deep.er}}", "here"],
    ["{{count}} {{flag}}", "3 false"],
    ["{{list}}", '[{"id":7},{"id":8}]'],
    ["{{nested}}", '{"deep":{"er":"here"}}'],
    ["a {{name}} b {{name}} c", "a Ada b Ada c"],
  ])("%s is %s", (source, wanted) => expect(show(source, view)).toBe(wanted));
});

describe("a body that is not an object is shown as payload:", () => {
  test.each([
    ["{{payload}}", "text", "text"],
    ["{{payload[0]}}", ["x"], "x"],
    ["{{[0]}}", ["x"], "x"],
    ["{{payload}}", 5, "5"],
    ["{{payload.x}}", null, ""],
  ])("%s with body %p", (source, payload, wanted) => expect(show(source, makeView({ payload }))).toBe(wanted));
});

describe("a tag without a value", () => {
  test.each(["{{nope}}", "{{none}}", "{{list[9].id}}", "{{name.first}}", "{{name.length}}", "{{headers.nope}}"])(
    "%s: is empty, stays, or is an error, as the mapping's setting says",
    (tag) => {
      expect(show(`<${tag}>`, view)).toBe("<>");
      expect(show(`<${tag}>`, view, "keep")).toBe(`<${tag}>`);
      expect(() => show(tag, view, "error")).toThrow("has no value in this request");
    },
  );

  test("is not an error for an empty text", () => expect(show("<{{empty}}>", view, "error")).toBe("<>"));

  test.each(["__proto__", "constructor", "constructor.prototype", "list.map", "name.constructor", "toString"])(
    "is empty for %s of a prototype",
    (path) => expect(show(`{{${path}}}`, view)).toBe(""),
  );

  test("may name a field of the body that is named like a prototype's", () => {
    const payload: unknown = JSON.parse('{"constructor": "mason", "__proto__": {"x": "own"}}');
    expect(show("{{constructor}} {{__proto__.x}}", makeView({ payload }))).toBe("mason own");
  });
});

describe("filters", () => {
  test.each([
    ['{{nope | default: "none"}}', "none"],
    ['{{empty | default: "none"}}', "none"],
    ['{{flag | default: "none"}}', "false"],
    ["{{name | json}}", '"Ada"'],
    ["{{name | upper}} {{name|lower}}", "ADA ada"],
    ["{{name | truncate: 2}}", "Ad…"],
    ["{{name | truncate: 3}}", "Ada"],
    ["{{name | truncate: 0}}", "…"],
    ["{{at | date}}", "2026-01-02T03:04:05.000Z"],
    ['{{at | date: "date"}} {{at | date: "time"}}', "2026-01-02 03:04"],
    ["{{now | date: 'datetime'}}", "2026-01-02 03:04 UTC"],
    ["{{name | date}}", "Ada"],
    ["{{html | escape}}", "&#60;a href=&#34;x&#34;&#62;&#38;&#39;"],
    ["{{html | escape: 'url'}}", "%3Ca%20href%3D%22x%22%3E%26'"],
    ["{{list | json | truncate: 5}}", '[{"id…'],
    ['{{nope | default: "}} | : ,"}}', "}} | : ,"],
    ["{{encoded | base64}}", '{"historyId":7,"n":"ö"}'],
    ["{{encoded_url | base64}}", '{"historyId":7,"n":"ö"}'],
    ["{{html | base64}}", `<a href="x">&'`], // not base64
    ["{{bytes | base64}}", "/////w=="], // no text
    ["{{name | hash}}", new Bun.CryptoHasher("sha256").update("Ada").digest("hex").slice(0, 32)],
  ])("%s is %s", (source, wanted) => expect(show(source, view)).toBe(wanted));

  test("truncate counts graphemes", () =>
    expect(show("{{payload | truncate: 1}}", makeView({ payload: "👩‍👩‍👧x" }))).toBe("👩‍👩‍👧…"));

  test.each([
    ["{{name | shout}}", "no filter 'shout'; there are: default, json"],
    ["{{name | constructor}}", "no filter 'constructor'"],
    ["{{name | default}}", "filter 'default': expected 1 to 1 arguments, got 0"],
    ["{{name | truncate: x}}", "expected a text in quotes or a number"],
    ["{{a..b}}", "expected a key at '..b'"],
    ["{{a[}}", "expected a key at '['"],
    [`{{${"a.".repeat(40)}a}}`, "at most 32 keys"],
    [`{{${"a".repeat(600)}}}`, "at most 512 characters"],
  ])("%s is refused", (source, problem) => expect(() => makeTemplate(source, { missing: "empty" })).toThrow(problem));
});

test.each(["}}", "{ {name} }", "{name}", "{name}}", '{"a":{"b":1}}'])("%s is plain text", (source) =>
  expect(show(source, view)).toBe(source),
);

test.each([
  ["{{", "line 1, column 1: '{{' is not closed"],
  ["{{}}", "line 1, column 1: '{{}}' is empty"],
  ["{{ }}", "line 1, column 1: '{{}}' is empty"],
  ["a {{ b", "line 1, column 3: '{{ b' is not closed"],
  ["Build {{ payload.x ", "line 1, column 7: '{{ payload.x ' is not closed"],
  ["{{name}}\nx {{ name }\n{{name}}", "line 2, column 3: '{{ name }"],
  ["{{{}}}", "line 1, column 1: '{{{}}}' is not closed"],
  ['{{"}}', "line 1, column 1: '{{\"}}' is not closed"],
])("%s is an error with line and column", (source, message) => {
  expect(() => show(source, view)).toThrow(message);
});

test("braces in quotes do not end a tag", () => {
  expect(show(`{{ "{{" }} x {{'}}'}} {{name}}`, view)).toBe("{{ x }} Ada");
});

describe("a rendered text", () => {
  const origins = (source: string) =>
    makeTemplate(source, { missing: "keep" })(view).tainted.map(({ from, text }) => `${from}: ${text}`);

  test("marks the template's text as the operator's, and values as external", () =>
    expect(origins("Hi {{name}}, {{count}}!")).toEqual([
      "operator: Hi ",
      "external: Ada",
      "operator: , ",
      "external: 3",
      "operator: !",
    ]));
  test("marks path and headers as external", () =>
    expect(origins("{{path}}{{headers.x-event}}")).toEqual(["external: a/bpush"]));
  test("marks defaults, the time and kept tags as the operator's", () =>
    expect(origins('{{nope | default: "none"}} {{now | date: "date"}} {{nope}}')).toEqual([
      "operator: none 2026-01-02 {{nope}}",
    ]));
  test("marks filtered values as external", () =>
    expect(origins("{{name | upper | json}}")).toEqual(['external: "ADA"']));
});

test("a tag within a value is not rendered", () =>
  expect(show("{{payload}}", makeView({ payload: "{{headers.x}}", headers: { x: "!" } }))).toBe("{{headers.x}}"));

test("a template's output is limited to 1,048,576 characters", () => {
  const big = makeView({ payload: "x".repeat(100_000) });
  expect(() => show("{{payload}}".repeat(20), big)).toThrow("expected at most 1048576 characters of output");
});

test("a body that nests too deep is refused without a crash", () => {
  let payload: unknown = 1;
  for (let i = 0; i < 200_000; i++) payload = [payload];
  try {
    expect(show("{{payload}}", makeView({ payload })).length).toBeLessThan(1_048_577);
  } catch (error) {
    expect(error).toMatchObject({ code: "too_large" });
  }
});

describe("credentials", () => {
  const SECRET = "s3cr3t-value";
  const NAMES = (
    "authorization proxy-authorization cookie set-cookie x-gateway-token x-api-key x-hub-signature-256 x-hub-signature " +
    "stripe-signature x-slack-signature x-gitlab-token x-gitea-signature sentry-hook-signature linear-signature " +
    "webhook-signature svix-signature x-shopify-hmac-sha256 x-signature-ed25519 x-goog-channel-token x-auth-token " +
    "x-amz-security-token x-forwarded-access-token x-goog-iap-jwt-assertion x-vault-token apikey x-secret"
  ).split(" ");

  test.each(NAMES)("the header %s is hidden", (name) => {
    const secret = makeView({ headers: { [name]: SECRET, [name.toUpperCase()]: SECRET } });
    expect(show(`{{headers.${name}}}|{{headers}}`, secret)).not.toContain(SECRET);
  });

  test("the header of the mapping's own scheme is hidden", () => {
    const auth: SignatureConfig = {
      scheme: "hmac",
      secrets: [{ value: "k", expiresAt: undefined }],
      header: "X-Proof",
      prefix: "",
      algorithm: "sha256",
      encoding: "hex",
      signedContent: "{body}",
      timestampUnit: "s",
    };
    expect(show("{{headers.x-proof}}", makeView({ headers: { "x-proof": SECRET } }))).toBe(SECRET);
    expect(show("{{headers.x-proof}}{{headers}}", makeView({ headers: { "x-proof": SECRET } }, auth))).toBe("{}");
  });

  test("tokens of the query are hidden", () => expect(show("{{query}} {{query.token}}", view)).toBe('{"q":"1"} '));

  test("no template shows one, and every failure is an error of the product", () => {
    const piece = fc.oneof(
      fc.constantFrom("headers", "query", "payload", "authorization", "token", "__proto__", "constructor", "item"),
      fc.constantFrom(".", "[", "]", "{{", "}}", "|", ":", '"', "'", " ", "0", "json", "default", "hash", "upper"),
      fc.string({ maxLength: 8 }),
    );
    const source = fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join(""));
    const secret = makeView({
      headers: { authorization: SECRET, cookie: SECRET, "x-ok": "fine" },
      query: { token: SECRET },
      payload: { headers: { a: 1 }, list: [1, [2]] },
    });
    fc.assert(
      fc.property(source, fc.boolean(), (text, isTag) => {
        try {
          const made = makeTemplate(isTag ? `{{${text}}}` : text, { missing: "empty" })(secret);
          expect(plain(made.tainted)).not.toContain(SECRET);
          expect(plain(made.tainted)).not.toContain("[native code]");
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
        }
      }),
      { numRuns: 3000 },
    );
  });
});
