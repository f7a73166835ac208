/** Compressed request bodies, over a socket. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { JSON_BYTES_MAX } from "../../../src/server/http/body.ts";
import { makeHarness, type Harness } from "../harness.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
});
afterAll(() => harness.close());

type Bytes = Uint8Array<ArrayBuffer>;
const bytes = (from: Uint8Array): Bytes => new Uint8Array(from);
const post = async (path: string, body: Bytes, coding: string) => {
  const response = await fetch(url + path, { method: "POST", body, headers: { "content-encoding": coding } });
  return { status: response.status, headers: response.headers, text: await response.text() };
};
const asking = (input: string): string => JSON.stringify({ model: "m", input });
const errorIn = (text: string): string => JSON.parse(text).error.message;

const CODINGS: [name: string, coding: string, pack: (text: string) => Bytes][] = [
  ["gzip", "gzip", (text) => bytes(gzipSync(text))],
  ["gzip by its old name", "x-gzip", (text) => bytes(gzipSync(text))],
  ["gzip in capitals", " GZIP ", (text) => bytes(gzipSync(text))],
  ["deflate", "deflate", (text) => bytes(deflateSync(text))],
  ["deflate without zlib's header", "deflate", (text) => bytes(deflateRawSync(text))],
  ["br", "br", (text) => bytes(brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }))],
  ["zstd", "zstd", (text) => bytes(zstdCompressSync(text))],
];

describe.each(CODINGS)("a body in %s", (_, coding, pack) => {
  test("is decompressed on the routes of every API", async () => {
    const text = "héllo ".repeat(50_000);
    expect((await post("/v1/responses", pack(asking(text)), coding)).status).toBe(200);
    expect(harness.runtime.requests.at(-1)).toMatchObject({ messages: [{ content: text }] });
    const generate = JSON.stringify({ model: "m", prompt: "hi" });
    expect((await post("/api/generate", pack(generate), coding)).status).toBe(200);
    const messages = JSON.stringify({ model: "m", max_tokens: 3, messages: [{ role: "user", content: "hi" }] });
    for (const path of ["/api/chat", "/v1/chat/completions", "/v1/messages"]) {
      expect([path, (await post(path, pack(messages), coding)).status]).toEqual([path, 200]);
    }
  });

  test("is decompressed before a blob's digest is checked", async () => {
    const text = `weights of ${coding} ${_}`.repeat(10_000);
    const digest = createHash("sha256").update(text).digest("hex");
    expect((await post(`/api/blobs/sha256:${digest}`, pack(text), coding)).status).toBe(201);
    const stored = await fetch(`${url}/api/blobs/sha256:${digest}`);
    expect(await stored.text()).toBe(text);
  });

  test("above the limit is refused before it is all in memory", async () => {
    const bomb = pack(asking("a".repeat(JSON_BYTES_MAX)));
    expect(bomb.length).toBeLessThan(1_000_000);
    const { status, text } = await post("/v1/responses", bomb, coding);
    expect([status, errorIn(text)]).toEqual([
      413,
      `request body: expected at most ${JSON_BYTES_MAX} bytes, got more once decompressed`,
    ]);
  });

  test("is refused if it is corrupt or cut off", async () => {
    for (const body of [new Uint8Array([255, 2, 3, 4]), pack(asking("hello ".repeat(100))).slice(0, -9)]) {
      const { status, text } = await post("/v1/responses", body, coding);
      expect([status, errorIn(text)]).toEqual([400, expect.stringContaining("request body")]);
    }
  });

  test("counts as missing if it is empty", async () => {
    const { status, text } = await post("/v1/responses", pack(""), coding);
    expect([status, errorIn(text)]).toEqual([400, "missing request body"]);
  });
});

test("a Zstandard body with too wide a window is refused", async () => {
  const params = { [constants.ZSTD_c_windowLog]: 24, [constants.ZSTD_c_contentSizeFlag]: 0 };
  const wide = bytes(zstdCompressSync(asking("a b c d ".repeat(2 ** 21)), { params }));
  const { status, text } = await post("/v1/responses", wide, "zstd");
  expect([status, errorIn(text)]).toEqual([400, expect.stringContaining("expected zstd, got")]);
});

test.each(["compress", "snappy", "gzip, zstd", "aes128gcm", "constructor", "x".repeat(5000)])(
  "%.20s is refused with 415 and the list of supported codings",
  async (coding) => {
    for (const path of ["/v1/responses", "/v1/messages", "/api/generate", `/api/blobs/sha256:${"0".repeat(64)}`]) {
      const { status, headers, text } = await post(path, new TextEncoder().encode("x"), coding);
      expect([path, status, headers.get("accept-encoding")]).toEqual([path, 415, "gzip, deflate, br, zstd"]);
      expect(text).toContain("content-encoding: expected one of gzip, deflate, br, zstd, got '");
      expect(text.length).toBeLessThan(500);
    }
  },
);

test.each(["identity", "IDENTITY", ""])("the coding '%s' leaves the body as it is", async (coding) => {
  expect((await post("/api/generate", bytes(Buffer.from(asking("hi"))), coding)).status).toBe(200);
});
