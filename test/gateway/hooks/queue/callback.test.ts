import { afterEach, describe, expect, setSystemTime, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { sendCallback, urlProblem, type Callback } from "../../../../src/gateway/hooks/queue/callback.ts";
import { isPublicAddress } from "../../../../src/base/public-address.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
let server: ReturnType<typeof Bun.serve> | undefined;
afterEach(() => server?.stop(true));

function listen(answer: (request: Request) => Response | Promise<Response>): string {
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  return `http://localhost:${server.port}/done`;
}

const callback = (url: string, more: Partial<Callback> = {}): Callback => ({
  url,
  body: '{"status":"ok"}',
  id: "run_1",
  secret: SECRET,
  nowMs: Date.now(),
  signal: new AbortController().signal,
  allowPrivate: true,
  ...more,
});

test("a callback verifies with the receiver's own library", async () => {
  let verified: unknown;
  const url = listen(async (request) => {
    verified = new Webhook(SECRET).verify(await request.text(), Object.fromEntries(request.headers));
    return new Response("ok");
  });
  expect(await sendCallback(callback(url))).toEqual({ kind: "sent", status: 200 });
  expect(verified).toEqual({ status: "ok" });
});

test.each([
  [204, {}, { kind: "sent", status: 204 }],
  [400, {}, { kind: "failed", reason: "callbackUrl answered 400" }],
  [302, { location: "http://127.0.0.1:1/" }, { kind: "failed", reason: "callbackUrl answered 302" }],
  [503, {}, { kind: "retry", reason: "callbackUrl answered 503" }],
  [429, { "retry-after": "7" }, { kind: "retry", reason: "callbackUrl answered 429", afterMs: 7000 }],
])("an answer of %d %j is %j", async (status, headers, outcome) => {
  const url = listen(() => new Response(null, { status, headers: headers as Record<string, string> }));
  expect(await sendCallback(callback(url))).toEqual(outcome as never);
});

test("an answer whose Retry-After is a date is retried at that date", async () => {
  const nowMs = Math.floor(Date.now() / 1000) * 1000;
  const headers = { "retry-after": new Date(nowMs + 60_000).toUTCString() };
  setSystemTime(nowMs);
  try {
    const outcome = await sendCallback(callback(listen(() => new Response(null, { status: 429, headers }))));
    expect(outcome).toMatchObject({ kind: "retry", afterMs: 60_000 });
  } finally {
    setSystemTime();
  }
});

test("an unreachable receiver, and one that does not answer in time, are retried", async () => {
  expect(await sendCallback(callback("http://127.0.0.1:1/"))).toMatchObject({ kind: "retry" });
  expect(await sendCallback(callback("http://nowhere.invalid/"))).toMatchObject({ kind: "retry" });
  const url = listen(() => new Promise(() => {}));
  expect(await sendCallback(callback(url, { signal: AbortSignal.timeout(100) }))).toMatchObject({ kind: "retry" });
});

test("a silent name server does not delay a stop", async () => {
  const lookup = (): Promise<never> => new Promise(() => {});
  const sent = sendCallback(callback("http://slow.example/", { lookup, signal: AbortSignal.timeout(100) }));
  const reason = "the host of callbackUrl cannot be resolved";
  expect(await Promise.race([sent, Bun.sleep(5000)])).toEqual({ kind: "retry", reason });
});

describe("a public callback refuses", () => {
  test.each([
    "http://example.com/",
    "ftp://example.com/",
    "https://user:pass@example.com/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://0x7f.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[fd00::1]/",
    "nonsense",
  ])("%s", async (url) => {
    expect(urlProblem(url, { allowPrivate: false })).toBeString();
    expect(await sendCallback(callback(url, { allowPrivate: false }))).toMatchObject({ kind: "failed" });
  });

  test("a name that resolves to this machine", async () => {
    let calls = 0;
    const url = listen(() => {
      calls++;
      return new Response();
    });
    const outcome = await sendCallback(callback(url.replace("http:", "https:"), { allowPrivate: false }));
    expect(outcome).toEqual({ kind: "failed", reason: "callbackUrl is not a public address" });
    expect(calls).toBe(0);
  });
});

describe("addresses", () => {
  test.each(["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "2606:4700::1111", "100.63.255.255"])(
    "%s is public",
    (ip) => expect(isPublicAddress(ip)).toBe(true),
  );
  test.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "fe80::1%eth0",
    "2002:7f00:1::",
    "ff02::1",
    "localhost",
    "",
  ])("%p is not public", (ip) => expect(isPublicAddress(ip)).toBe(false));
});
