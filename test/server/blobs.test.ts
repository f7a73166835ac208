import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blobPath } from "../../src/library/store/blobs.ts";
import { blobName, digestOf } from "../../src/library/store/digest.ts";
import { eventually } from "../e2e/hearth.ts";
import { testRng } from "../seed.ts";
import { tempFolder } from "../library/fixture.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
let url: string;
beforeEach(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
});
afterEach(() => harness.close());

const BYTES = new TextEncoder().encode("weights");
const DIGEST = digestOf(BYTES);
const OTHER = `sha256:${"0".repeat(64)}`;

const send = (method: string, digest: string, body?: Uint8Array | string | ReadableStream) =>
  fetch(`${url}/api/blobs/${digest}`, { method, ...(body === undefined ? {} : { body }) });
const blobs = () => readdir(join(harness.root, "blobs"));

describe("HEAD /api/blobs/:digest", () => {
  test("is 200 for a stored blob and 404 for a missing one, without a body", async () => {
    await send("POST", DIGEST, BYTES);
    for (const [digest, status] of [
      [DIGEST, 200],
      [DIGEST.replace(":", "-"), 200],
      [DIGEST.toUpperCase().replace("SHA256", "sha256"), 200],
      [encodeURIComponent(DIGEST), 200],
      [OTHER, 404],
    ] as const) {
      const response = await send("HEAD", digest);
      expect([digest, response.status, await response.text()]).toEqual([digest, status, ""]);
    }
  });

  test("renews the blob's change time, so that pruning keeps it for the coming create", async () => {
    await send("POST", DIGEST, BYTES);
    const before = (await stat(blobPath(harness.root, DIGEST))).ctimeMs;
    const isYounger = async (): Promise<boolean> => {
      await send("HEAD", DIGEST);
      return (await stat(blobPath(harness.root, DIGEST))).ctimeMs > before;
    };
    expect(await eventually(isYounger)).toBe(true); // the clock of files may tick a hundred times a second
  });
});

describe("HEAD and POST refuse an invalid digest", () => {
  test.each([
    "sha256:zz",
    "sha256",
    DIGEST.slice(0, -1),
    `${DIGEST}0`,
    `md5:${DIGEST.slice(7)}`,
    "..%2f..%2fmanifests",
    `sha256:..%2F${"a".repeat(61)}`,
    `%2Fetc%2Fpasswd`,
    `${DIGEST}%00`,
    `${DIGEST}%0A`,
  ])("%s", async (digest) => {
    expect((await send("HEAD", digest)).status).toBe(400);
    const response = await send("POST", digest, BYTES);
    expect([response.status, await response.json()]).toEqual([400, { error: "invalid digest format" }]);
  });
});

describe("POST /api/blobs/:digest", () => {
  test("is 201 with the path of the file, and 200 with the same path when repeated", async () => {
    const path = blobPath(harness.root, DIGEST);
    for (const status of [201, 200]) {
      const response = await send("POST", DIGEST, BYTES);
      expect([response.status, await response.text()]).toEqual([status, path]);
    }
    expect(await Bun.file(path).bytes()).toEqual(BYTES);
  });

  test("is 400 if the content has another digest, and stores nothing", async () => {
    const before = await blobs();
    const response = await send("POST", OTHER, BYTES);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: `digest mismatch, expected "${OTHER}", got "${DIGEST}"` });
    expect(await blobs()).toEqual(before);
  });

  test("accepts an empty body, and a digest in upper case or with a dash", async () => {
    const empty = digestOf(new Uint8Array());
    expect((await send("POST", empty)).status).toBe(201);
    expect((await send("POST", `sha256-${DIGEST.slice(7).toUpperCase()}`, BYTES)).status).toBe(201);
    expect(await blobs()).toContain(blobName(DIGEST));
  });

  test("an unread request body does not disturb the next request of the connection", async () => {
    const bytes = new Uint8Array(3_000_000).fill(1);
    const digest = digestOf(bytes);
    expect((await send("POST", digest, bytes)).status).toBe(201);
    for (let i = 0; i < 5; i++) {
      expect((await send("POST", digest, bytes)).status).toBe(200);
      expect((await send("POST", "sha256:zz", bytes)).status).toBe(400);
      expect((await send("HEAD", digest)).status).toBe(200);
    }
  });

  test("several uploads of one digest at once all succeed", async () => {
    const bytes = Uint8Array.from({ length: 60_000 }, testRng("blobs").uint32);
    const digest = digestOf(bytes);
    const pieces = (): ReadableStream =>
      new ReadableStream({
        async start(controller) {
          for (let at = 0; at < bytes.length; at += 20_000) {
            controller.enqueue(bytes.subarray(at, at + 20_000));
            await Bun.sleep(10);
          }
          controller.close();
        },
      });
    const responses = await Promise.all(Array.from({ length: 4 }, () => send("POST", digest, pieces())));
    for (const response of responses) expect([200, 201]).toContain(response.status);
    expect(digestOf(await Bun.file(blobPath(harness.root, digest)).bytes())).toBe(digest);
    expect((await blobs()).filter((name) => name.startsWith("."))).toEqual([]);
  });

  test.each([
    ["an announced length", "content-length: 1000000\r\n\r\n", "half of it"],
    ["chunks", "transfer-encoding: chunked\r\n\r\n", "8\r\nhalf of \r\n"],
  ])("a client that disconnects in the middle of %s leaves nothing", async (_, header, part) => {
    const before = await blobs();
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.write(`POST /api/blobs/${DIGEST} HTTP/1.1\r\nhost: ${hostname}\r\n${header}${part}`);
    const waitFor = (check: (names: string[]) => boolean) => eventually(async () => check(await blobs()));
    await waitFor((names) => names.length > before.length);
    expect((await blobs()).length).toBe(before.length + 1);
    socket.destroy();
    await waitFor((names) => names.length === before.length);
    expect(await blobs()).toEqual(before);
    const line = () => harness.logs.find((entry) => entry["path"] === `/api/blobs/${DIGEST}`);
    await eventually(() => line() !== undefined); // the file is deleted first
    expect(line()).toMatchObject({ status: 499, error: "request canceled" });
  });

  test("refuses PUT with 405 and lists the allowed methods", async () => {
    const response = await send("PUT", DIGEST);
    expect([response.status, response.headers.get("allow")]).toEqual([405, "HEAD, GET, POST"]);
  });
});

/** A separate process, so that other tests of this run do not count. */
test("an upload of 192 MB costs less than 64 MB of memory", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hearth-upload-"));
  const program = `
    const { makeApp } = await import("${join(import.meta.dir, "../../src/server/app.ts")}");
    const { startServer } = await import("${join(import.meta.dir, "../../src/server/http/serve.ts")}");
    const { openStore } = await import("${join(import.meta.dir, "../../src/library/store/store.ts")}");
    const host = { hostname: "127.0.0.1", port: 0 };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const store = await openStore(process.argv.at(-1));
    const library = { claim() {}, others: [] };
    const config = { host, hosts: [], origins: [], apiKeys: [] };
    const { url } = startServer(makeApp({ store, library, config, log, version: "1", now: () => new Date() }), { host });
    let most = 0;
    setInterval(() => { most = Math.max(most, process.memoryUsage.rss()); }, 5);
    console.log(url + " " + process.memoryUsage.rss());
    process.on("SIGTERM", () => { console.log(most); process.exit(0); });`;
  const child = Bun.spawn([process.execPath, "-e", program, "--", folder], { stdout: "pipe", stderr: "inherit" });
  const output = child.stdout.getReader();
  const line = async (): Promise<string> => new TextDecoder().decode((await output.read()).value).trim();
  const [address = "", rss = ""] = (await line()).split(" ");
  const piece = new Uint8Array(2 ** 20).fill(5);
  const hash = createHash("sha256");
  for (let i = 0; i < 192; i++) hash.update(piece);
  const digest = `sha256:${hash.digest("hex")}`;
  let sent = 0;
  const body = new ReadableStream({
    pull: (controller) => (sent++ < 192 ? controller.enqueue(piece) : controller.close()),
  });
  try {
    expect((await fetch(`${address}/api/blobs/${digest}`, { method: "POST", body })).status).toBe(201);
    child.kill("SIGTERM");
    const grown = (Number(await line()) - Number(rss)) / 2 ** 20;
    expect(grown).toBeLessThan(64);
  } finally {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true });
  }
}, 60_000);

describe("GET /api/blobs/:digest", () => {
  const get = (headers: Record<string, string> = {}, digest: string = DIGEST) =>
    fetch(`${url}/api/blobs/${digest}`, { headers });
  beforeEach(async () => void (await send("POST", DIGEST, BYTES)));

  test("returns the file with headers that let clients cache it forever", async () => {
    const response = await get();
    expect([response.status, await response.text()]).toEqual([200, "weights"]);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "accept-ranges": "bytes",
      "cache-control": "private, max-age=31536000, immutable",
      "content-length": "7",
      "content-type": "application/octet-stream",
      etag: `"${DIGEST}"`,
    });
    expect((await get({}, OTHER)).status).toBe(404);
  });

  test.each([
    ["bytes=0-2", "wei", "bytes 0-2/7"],
    ["bytes=3-3", "g", "bytes 3-3/7"],
    ["bytes=5-", "ts", "bytes 5-6/7"],
    ["bytes=-3", "hts", "bytes 4-6/7"],
    ["bytes=-30", "weights", "bytes 0-6/7"],
    ["bytes=4-900", "hts", "bytes 4-6/7"],
    ["Bytes=0-2", "wei", "bytes 0-2/7"],
  ])("range %s returns that part", async (range, expected, found) => {
    const response = await get({ range });
    expect([response.status, await response.text()]).toEqual([206, expected]);
    const about = ["content-range", "content-length", "accept-ranges"].map((name) => response.headers.get(name));
    expect(about).toEqual([found, String(expected.length), "bytes"]);
  });

  test.each(["bytes=7-", "bytes=9-12", "bytes=-0"])("range %s outside of the file is 416", async (range) => {
    const response = await get({ range });
    expect([response.status, response.headers.get("content-range"), await response.text()]).toEqual([
      416,
      "bytes */7",
      "",
    ]);
  });

  test.each(["bytes=3-1", "bytes=0-1,3-4", "items=0-1", "bytes=-", "bytes=a-b", ""])(
    "unsupported range %p is ignored, and the whole file is returned",
    async (range) => {
      const response = await get({ range });
      expect([response.status, await response.text()]).toEqual([200, "weights"]);
    },
  );

  test("If-None-Match of the digest is 304; a range with another tag in If-Range returns the whole file", async () => {
    for (const tag of [`"${DIGEST}"`, `W/"${DIGEST}"`, `"a", "${DIGEST}"`, "*"]) {
      const response = await get({ "if-none-match": tag });
      expect([tag, response.status, await response.text()]).toEqual([tag, 304, ""]);
    }
    expect((await get({ "if-none-match": '"a"' })).status).toBe(200);
    expect((await get({ range: "bytes=0-2", "if-range": `"${DIGEST}"` })).status).toBe(206);
    expect((await get({ range: "bytes=0-2", "if-range": '"a"' })).status).toBe(200);
  });

  test.each([{}, { range: "bytes=0-2" }])(
    "HEAD gives the size of the whole file, with any range: %p",
    async (asked) => {
      const { status, headers } = await fetch(`${url}/api/blobs/${DIGEST}`, { method: "HEAD", headers: asked });
      const about = ["content-length", "content-range", "etag"].map((name) => headers.get(name));
      expect([status, ...about]).toEqual([200, "7", null, `"${DIGEST}"`]);
    },
  );

  test("GET reads a blob of a borrowed store, while HEAD is 404 until it is uploaded to the own one", async () => {
    const beside = await tempFolder();
    const digest = digestOf(new TextEncoder().encode("beside"));
    await Bun.write(blobPath(beside, digest), "beside");
    const second = await makeHarness({ others: [beside] });
    try {
      const blob = `${second.listen().url}/api/blobs/${digest}`;
      expect((await fetch(blob, { method: "HEAD" })).status).toBe(404);
      const part = await fetch(blob, { headers: { range: "bytes=2-" } });
      expect([part.status, await part.text()]).toEqual([206, "side"]);
      expect((await fetch(blob, { method: "POST", body: "beside" })).status).toBe(201);
      expect((await fetch(blob, { method: "HEAD" })).status).toBe(200);
    } finally {
      await second.close();
      await rm(beside, { recursive: true });
    }
  });
});
