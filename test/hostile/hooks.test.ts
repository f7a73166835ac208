/**
 * The webhook ingress and the worst senders: bounded memory and time, a fitting answer, and no echo of their input. No
 * answer below may be a 5xx, except at a limit of concurrency.
 */
import { createHmac } from "node:crypto";
import { connect } from "node:net";
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { UNPROVED_READS_MAX, UNPROVED_SHARE } from "../../src/gateway/hooks/ingress/ingress.ts";
import { anyCharacter } from "../characters.ts";
import { makeWorld, TOKEN } from "../gateway/hooks/ingress/fixtures.ts";
import { type Harness, makeHarness } from "../server/harness.ts";

setDefaultTimeout(60_000);

const READ_MS = { proved: 1500, unproved: 4000 };
const LIMIT = 262_144;
const auth = { scheme: "github", secrets: "github-secret" };
/** Signature of the body `{}`. */
const proof = { "x-hub-signature-256": `sha256=${createHmac("sha256", auth.secrets).update("{}").digest("hex")}` };
const mappings = [
  { match: { path: "open" }, action: "wake", textTemplate: "{{payload}}" },
  { match: { path: "signed" }, action: "wake", textTemplate: "x", auth },
  { match: { path: "cut-off" }, action: "wake", textTemplate: "x" },
];

let harness: Harness;
let url: string;
beforeAll(async () => {
  const options = {
    hooks: { mappings },
    trustedProxies: ["127.0.0.1"],
    maxQueued: 1_000_000,
    deps: { readMs: READ_MS },
  };
  harness = await makeHarness({}, { hooks: (log) => makeWorld({ log, ...options }).ingress });
  url = harness.listen().url;
});
afterAll(async () => {
  expect(harness.logs.filter(({ msg }) => msg === "bug")).toEqual([]);
  await harness.close();
});

const bearer = { authorization: `Bearer ${TOKEN}` };
const post = (
  path: string,
  body: NonNullable<RequestInit["body"]>,
  headers: Record<string, string> = {},
): Promise<Response> => fetch(`${url}${path}`, { method: "POST", body, headers: { ...bearer, ...headers } });

async function codeOf(response: Response): Promise<[number, string]> {
  const { code } = (await response.json()) as { code: string };
  return [response.status, code];
}

interface RawAnswer {
  readonly text: string;
  /** True if the server closed the connection. */
  readonly closed: boolean;
}

/** Writes raw bytes, in pieces if given; resolves with the first whole answer. */
function send(pieces: readonly string[], { pauseMs = 0, waitMs = 10_000 } = {}): Promise<RawAnswer> {
  const { promise, resolve } = Promise.withResolvers<RawAnswer>();
  let text = "";
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const end = (closed: boolean): void => {
    clearTimeout(timer);
    clearInterval(writing);
    socket.destroy();
    resolve({ text, closed });
  };
  const timer = setTimeout(() => end(false), waitMs);
  const left = [...pieces];
  socket.write(left.shift() ?? "");
  const writing = setInterval(() => (left.length > 0 ? socket.write(left.shift()!) : undefined), pauseMs);
  socket.on("data", (data) => {
    text += data.toString("latin1");
    if (/\r\n\r\n\{.*\}$/s.test(text) && !/connection: close/i.test(text)) end(false);
  });
  socket.on("error", () => {});
  socket.on("close", () => end(true));
  return promise;
}

const head = (path: string, ...lines: string[]): string =>
  [`POST ${path} HTTP/1.1`, "Host: x", ...lines, "", ""].join("\r\n");

describe("slow senders:", () => {
  test.each([
    ["with Content-Length", `Content-Length: 100`, '{"text"'],
    ["in chunks", "Transfer-Encoding: chunked", '7\r\n{"text"\r\n'],
  ])("a body that never ends, %s, gets 408, and its connection is closed", async (_, line, start) => {
    const { text, closed } = await send([head("/hooks/wake", `Authorization: Bearer ${TOKEN}`, line) + start]);
    expect(text).toStartWith("HTTP/1.1 408 ");
    expect(text).toContain('"code":"body_timeout"');
    expect(closed).toBe(true);
  });

  test("a body that arrives byte by byte still has one deadline and gets 408", async () => {
    const drops = Array.from({ length: 1000 }, () => "1\r\nx\r\n");
    const request = head("/hooks/wake", `Authorization: Bearer ${TOKEN}`, "Transfer-Encoding: chunked");
    const { text } = await send([request, ...drops], { pauseMs: 20 });
    expect(text).toStartWith("HTTP/1.1 408 ");
  });

  test.each([
    ["with Content-Length", "Content-Length: 1000000", "x"],
    ["in chunks", "Transfer-Encoding: chunked", "1\r\nx\r\n"],
  ])(
    "a sender without a token gets 401 before its body ends, %s, and its connection is closed",
    async (_, line, drop) => {
      const drops = Array.from({ length: 1000 }, () => drop);
      const { text, closed } = await send([head("/hooks/wake", line), ...drops], { pauseMs: 20 });
      expect(text).toStartWith("HTTP/1.1 401 ");
      expect(text).toMatch(/connection: close/i);
      expect(closed).toBe(true);
    },
  );

  test("a sender without a token whose body is complete gets 401 and keeps its connection", async () => {
    const { text, closed } = await send([`${head("/hooks/wake", "Content-Length: 2")}{}`]);
    expect(text).toStartWith("HTTP/1.1 401 ");
    expect(text).not.toMatch(/connection: close/i);
    expect(closed).toBe(false);
  });

  test("a body over the limit gets 413 before its connection is closed", async () => {
    const body = "x".repeat(LIMIT + 1);
    for (let i = 0; i < 5; i++)
      expect(await codeOf(await post("/hooks/wake", body))).toEqual([413, "payload_too_large"]);
    const endless = Array.from({ length: 1000 }, () => `10000\r\n${"x".repeat(65_536)}\r\n`);
    const request = head("/hooks/wake", `Authorization: Bearer ${TOKEN}`, "Transfer-Encoding: chunked");
    const tooMuch = [request, ...endless.splice(0, 40)].join(""); // at once: a busy machine has time to read it
    const { text, closed } = await send([tooMuch, ...endless], { pauseMs: 5 });
    expect(text).toStartWith("HTTP/1.1 413 ");
    expect(closed).toBe(true);
  });

  describe("unauthenticated bodies", () => {
    const begun = (address: string, path = "/hooks/signed"): string =>
      head(path, `X-Forwarded-For: ${address}`, "Content-Length: 100") + "{";
    const signedFrom = (address: string): Promise<Response> =>
      post("/hooks/signed", "{}", { ...proof, "x-forwarded-for": address });
    /** Waits until an address has no slot left; a free slot goes to another slow sender. */
    const untilRefused = async (address: string, waiting: Promise<RawAnswer>[]): Promise<Response> => {
      let answer = await signedFrom(address);
      for (; answer.status !== 503; answer = await signedFrom(address)) waiting.push(send([begun(address)]));
      return answer;
    };

    test("one address uses at most its share of the reading slots", async () => {
      const waiting = Array.from({ length: UNPROVED_READS_MAX + 6 }, () => send([begun("192.0.2.1")]));
      const refused = await untilRefused("192.0.2.1", waiting);
      expect(refused.headers.get("retry-after")).toBe("1");
      expect(await codeOf(refused)).toEqual([503, "too_busy"]);
      for (let i = 0; i < 100; i++) expect((await signedFrom("192.0.2.99")).status).toBe(200);
      expect((await post("/hooks/wake", '{"text":"others are served"}')).status).toBe(200);
      const statuses = (await Promise.all(waiting)).map(({ text }) => text.slice(9, 12));
      expect(statuses.filter((status) => status === "408")).toHaveLength(UNPROVED_SHARE);
      expect(new Set(statuses)).toEqual(new Set(["408", "503"]));
    });

    test("the addresses of one IPv6 network share a limit, and several networks leave a slot for another", async () => {
      const network = Array.from({ length: UNPROVED_READS_MAX }, (_, i) => `2001:db8::${i + 1}`);
      const waiting = network.map((address) => send([begun(address)]));
      await untilRefused("2001:db8::ffff", waiting);
      expect((await signedFrom("2001:db8:0:1::1")).status).toBe(200);
      const others = Array.from({ length: 4 }, (_, i) => `198.51.100.${i}`);
      const more = others.flatMap((address) =>
        Array.from({ length: UNPROVED_READS_MAX }, () => send([begun(address)])),
      );
      for (const address of others) await untilRefused(address, more);
      expect((await signedFrom("2001:db8:0:2::1")).status).toBe(200);
      await Promise.all([...waiting, ...more]);
    });

    test("slow bodies count as failed attempts; a locked address gets 429 after a moment and uses no slot", async () => {
      for (let round = 0; round < 2; round++) {
        await Promise.all(Array.from({ length: UNPROVED_SHARE }, () => send([begun("203.0.113.1")])));
      }
      const startedMs = performance.now();
      const { text } = await send([begun("203.0.113.1")]);
      expect(performance.now() - startedMs).toBeLessThan(READ_MS.unproved);
      expect(text).toStartWith("HTTP/1.1 429 ");
      expect(text).toMatch(/retry-after: \d+/i);
      const waiting = Array.from({ length: 30 }, () => send([begun("203.0.113.1")]));
      for (let i = 0; i < 50; i++) expect((await signedFrom("203.0.113.2")).status).toBe(200);
      await Promise.all(waiting);
      expect((await signedFrom("203.0.113.1")).status).toBe(200); // and its failures are cleared
    });
  });

  test("a sender that disconnects in the middle of its body is logged with 408 or 499", async () => {
    const path = "/hooks/cut-off"; // unique to this test: other requests may be logged late
    const noted = () => harness.logs.find((line) => line["path"] === path);
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(`${head(path, `Authorization: Bearer ${TOKEN}`, "Content-Length: 100")}{`, () => {
      setTimeout(() => socket.destroy(), 20);
    });
    while (!noted()) await Bun.sleep(5);
    expect(noted()).toMatchObject({ msg: "request" });
    expect([408, 499]).toContain(noted()?.["status"] as number);
  });
});

describe("large bodies:", () => {
  const zeros = Buffer.alloc(200 * 1024 * 1024);
  test.each([
    ["gzip", gzipSync(zeros)],
    ["x-gzip", gzipSync(zeros)],
    ["deflate", deflateSync(zeros)],
    ["deflate", deflateRawSync(zeros)],
    ["br", brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })], // 317 bytes
  ])("a compression bomb of %s gets 413", async (encoding, body) => {
    const before = process.memoryUsage.rss();
    expect(await codeOf(await post("/hooks/wake", body, { "content-encoding": encoding }))).toEqual([
      413,
      "payload_too_large",
    ]);
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 1024 * 1024);
  });

  test.each([
    ["gzip", gzipSync],
    ["GZIP", gzipSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
    ["br", brotliCompressSync],
  ] as const)(
    "a %s body of exactly the limit when decompressed is accepted, and one byte more gets 413",
    async (encoding, compress) => {
      const body = (bytes: number): Buffer => compress(Buffer.from(JSON.stringify({ text: "x".repeat(bytes - 11) })));
      const headers = { "content-encoding": encoding };
      expect((await post("/hooks/wake", body(LIMIT), headers)).status).toBe(200);
      expect((await post("/hooks/wake", body(LIMIT + 1), headers)).status).toBe(413);
    },
  );

  test.each([
    ["gzip", "not gzip at all"],
    ["gzip", gzipSync('{"text":"hi"}').subarray(0, 15)],
    ["br", "not brotli at all"],
    ["deflate", "not deflate at all"],
  ])("a body that is not valid %s gets 400", async (encoding, body) => {
    const response = await post("/hooks/wake", body, { "content-encoding": encoding });
    expect(await codeOf(response)).toEqual([400, "invalid_encoding"]);
  });

  test.each(["zip", "gzip, gzip", "__proto__", "constructor"])(
    "the content encoding %s gets 415 with the supported encodings",
    async (name) => {
      const response = await post("/hooks/wake", "{}", { "content-encoding": name });
      expect(response.headers.get("accept-encoding")).toBe("gzip, deflate, br");
      expect(await codeOf(response)).toEqual([415, "unsupported_encoding"]);
    },
  );

  test("a body in chunks of one byte is counted by its content, without the chunk headers", async () => {
    const text = JSON.stringify({ text: "x".repeat(20_000) });
    const chunks = [...text].map((char) => `1\r\n${char}\r\n`).join("");
    const request = head("/hooks/wake", `Authorization: Bearer ${TOKEN}`, "Transfer-Encoding: chunked");
    expect((await send([`${request}${chunks}0\r\n\r\n`])).text).toStartWith("HTTP/1.1 200 ");
  });

  test("twenty thousand unknown fields are accepted, and twenty of them are named in warnings", async () => {
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`f${i}`, 1]));
    const response = await post("/hooks/wake", JSON.stringify({ text: "hi", ...many }));
    const { warnings } = (await response.json()) as { warnings: string[] };
    expect([response.status, warnings.length]).toEqual([200, 20]);
  });
});

describe("odd requests:", () => {
  test("two Authorization headers get 401", async () => {
    const twice = head("/hooks/wake", `Authorization: Bearer ${TOKEN}`, "Authorization: Bearer x", "Content-Length: 2");
    expect((await send([`${twice}{}`])).text).toStartWith("HTTP/1.1 401 ");
  });

  test("two Content-Length headers get 400", async () => {
    const twice = head("/hooks/wake", `Authorization: Bearer ${TOKEN}`, "Content-Length: 2", "Content-Length: 30");
    expect((await send([`${twice}{}`])).text).toStartWith("HTTP/1.1 400 ");
  });

  test("HTTP/1.0 without a host is served", async () => {
    const body = '{"text":"hi"}';
    const lines = [`Authorization: Bearer ${TOKEN}`, `Content-Length: ${body.length}`, "", body];
    const { text } = await send([["POST /hooks/wake HTTP/1.0", ...lines].join("\r\n")]);
    expect(text).toContain('"mode":"now"');
  });

  test("a token of 10,000 characters gets 401", async () => {
    const response = await fetch(`${url}/hooks/wake?token=${"x".repeat(10_000)}`, { method: "POST" });
    expect(response.status).toBe(401);
  });
});

describe("random requests:", () => {
  const fragment = fc.oneof(
    fc.json({ maxDepth: 4 }),
    fc.record({ text: fc.anything(), mode: fc.anything(), message: fc.anything(), to: fc.anything() }).map(jsonOf),
    fc
      .dictionary(
        fc.constantFrom("text", "message", "name", "sessionKey", "channel", "to", "model", "thinking", "deliver"),
        fc.oneof(fc.string({ unit: anyCharacter }), fc.jsonValue()),
      )
      .map(jsonOf),
    fc.string({ unit: anyCharacter }),
    fc.constantFrom(
      '{"__proto__":{}}',
      '{"text":"\\ud800"}',
      "\0",
      "﻿{}",
      "payload=%FF",
      "[".repeat(5000),
      "-",
      "1e999",
    ),
  );
  const request = fc.record({
    path: fc.oneof(
      fc.constantFrom("wake", "agent", "open", "signed", "", "/", "wake/", "..", "%00", "wake?token=", "agent?token=x"),
      fc.webPath(),
    ),
    method: fc.constantFrom("POST", "POST", "POST", "POST", "GET", "PUT", "OPTIONS", "DELETE"),
    body: fc.oneof(
      fragment.map((text) => new TextEncoder().encode(text)),
      fc.uint8Array({ maxLength: 2000 }),
    ),
    type: fc.constantFrom(
      "application/json",
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/x-ndjson",
      "multipart/form-data; boundary=x",
      "",
      "a/b;;;",
    ),
    encoding: fc.constantFrom(undefined, undefined, undefined, "gzip", "br", "deflate", "identity", "nonsense"),
    token: fc.constantFrom(TOKEN, TOKEN, TOKEN, "wrong", ""),
    key: fc.option(
      fc.string({ maxLength: 300 }).map((text) => text.replace(/[^\x20-\x7e]/g, "")),
      { nil: undefined },
    ),
  });

  test("none gets a 5xx, and every refusal has the common error body", async () => {
    await fc.assert(
      fc.asyncProperty(request, async ({ path, method, body, type, encoding, token, key }) => {
        const headers: Record<string, string> = { authorization: `Bearer ${token}`, "content-type": type };
        if (encoding !== undefined) headers["content-encoding"] = encoding;
        if (key !== undefined) headers["idempotency-key"] = key;
        const hasBody = method !== "GET" && method !== "OPTIONS";
        const init = { method, headers, ...(hasBody ? { body } : {}) };
        const response = await fetch(`${url}/hooks/${path.replace(/^\//, "")}`, init);
        expect(response.status).toBeLessThan(500);
        const text = await response.text();
        if (response.status < 400 || !response.headers.has("x-request-id")) return; // `/hooks/..` is not a hook
        expect(JSON.parse(text)).toMatchObject({ ok: false, code: expect.any(String), error: expect.any(String) });
      }),
      { numRuns: 2000 },
    );
  }, 300_000);

  test("no refusal repeats any part of the request", async () => {
    const mark = "Xq7zMARK";
    const marked = fc.record(
      Object.fromEntries(
        [
          "text",
          "message",
          "name",
          "sessionKey",
          "wakeMode",
          "channel",
          "to",
          "model",
          "timeoutSeconds",
          "callbackUrl",
        ].map((name) => [name, fc.constantFrom(mark, { [mark]: mark }, [mark], 5, undefined)]),
      ),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom("wake", "agent"), marked, fc.boolean(), async (path, body, isBroken) => {
        const text = isBroken ? `${JSON.stringify(body)}${mark}` : JSON.stringify(body);
        const response = await post(`/hooks/${path}?q=${mark}`, text, { "x-mark": mark });
        expect(await response.text()).not.toContain(mark);
      }),
      { numRuns: 200 },
    );
  });
});

/** As JSON; a value that JSON lacks becomes a text. */
function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? String(each) : each)) ?? "null";
  } catch {
    return String(value);
  }
}
