/** Compressed request bodies, over a socket. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { constants, zstdCompressSync } from "node:zlib";
import { ZSTD_BYTES_MAX } from "../../../src/server/http/zstd.ts";
import { makeHarness, type Harness } from "../harness.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
});
afterAll(() => harness.close());

const post = async (body: Uint8Array<ArrayBuffer>, encoding = "zstd") => {
  const headers = { "content-encoding": encoding };
  const response = await fetch(`${url}/v1/responses`, { method: "POST", body, headers });
  return { status: response.status, body: (await response.json()) as any };
};
const asking = (input: string): string => JSON.stringify({ model: "m", input });
const zstd = (text: string, params: Record<number, number> = {}) => new Uint8Array(zstdCompressSync(text, { params }));

describe("POST /v1/responses with Content-Encoding: zstd", () => {
  test("is read as what was compressed", async () => {
    const text = "héllo ".repeat(50_000);
    expect((await post(zstd(asking(text)))).status).toBe(200);
    expect(harness.runtime.requests.at(-1)).toMatchObject({ messages: [{ content: text }] });
  });

  test("that says too much is refused before it is all in memory", async () => {
    const bomb = zstd(asking("a".repeat(ZSTD_BYTES_MAX)));
    expect(bomb.length).toBeLessThan(100_000);
    const { status, body } = await post(bomb);
    expect([status, body.error.message]).toEqual([
      413,
      `request body: expected at most ${ZSTD_BYTES_MAX} bytes once decompressed`,
    ]);
  });

  test("with a window that is too wide is refused", async () => {
    const wide = zstd(asking("a b c d ".repeat(2 ** 21)), {
      [constants.ZSTD_c_windowLog]: 24,
      [constants.ZSTD_c_contentSizeFlag]: 0,
    });
    const { status, body } = await post(wide);
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("expected Zstandard, got")]);
  });

  test("that is none is refused", async () => {
    const { status, body } = await post(new Uint8Array([1, 2, 3, 4]));
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("expected Zstandard, got")]);
  });

  test("of which a part is missing is refused", async () => {
    const whole = zstd(asking("hello ".repeat(100)));
    expect((await post(whole.slice(0, -8))).status).toBe(400);
  });
});

test("other encodings are refused by name", async () => {
  const { status, body } = await post(new TextEncoder().encode("x"), "br");
  expect([status, body.error.message]).toEqual([400, "content-encoding: expected zstd or none, got 'br'"]);
});
