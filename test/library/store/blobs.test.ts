import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { blobPath, findBlob, receiveBlob } from "../../../src/library/store/blobs.ts";
import { blobName, digestOf, type Digest } from "../../../src/library/store/digest.ts";
import { tempFolder } from "../fixture.ts";

let root: string;
beforeEach(async () => void (root = await tempFolder()));
afterEach(() => rm(root, { recursive: true }));

const BYTES = new TextEncoder().encode("some content");
const DIGEST = digestOf(BYTES);

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.length; at += size) {
    await Bun.sleep(0);
    yield bytes.subarray(at, at + size);
  }
}

const blobs = () => readdir(join(root, "blobs"));

describe("content that is streamed into the store", () => {
  test.each([1, 5, 100])("is stored under its digest, in pieces of %d bytes", async (size) => {
    const blob = await receiveBlob(root, { chunks: inPieces(BYTES, size), expected: DIGEST });
    expect(blob).toEqual({ digest: DIGEST, size: BYTES.length });
    expect(await Bun.file(blobPath(root, DIGEST)).bytes()).toEqual(BYTES);
    expect(await blobs()).toEqual([blobName(DIGEST)]);
  });

  test("is stored whole if it is longer than one write", async () => {
    const bytes = new Uint8Array(5_000_000).map((_, i) => i >> 8);
    const blob = await receiveBlob(root, { chunks: inPieces(bytes, 70_001) });
    expect(blob).toEqual({ digest: digestOf(bytes), size: bytes.length });
    expect(digestOf(await Bun.file(blobPath(root, blob.digest)).bytes())).toBe(blob.digest);
  });

  test("may be empty", async () => {
    const empty = digestOf(new Uint8Array());
    await receiveBlob(root, { chunks: inPieces(new Uint8Array(), 1), expected: empty });
    expect(await findBlob(root, empty)).toBe(0);
  });

  test("is not stored if it has another digest", async () => {
    const expected = digestOf(new Uint8Array(1));
    const received = receiveBlob(root, { chunks: inPieces(BYTES, 5), expected });
    await expect(received).rejects.toMatchObject({
      code: "bad_request",
      message: `digest mismatch, expected "${expected}", got "${DIGEST}"`,
    });
    expect(await blobs()).toEqual([]);
  });

  test("is not stored if it breaks off", async () => {
    async function* broken(): AsyncGenerator<Uint8Array, void, void> {
      yield BYTES;
      expect(await blobs()).toHaveLength(1); // half of it, under a temporary name
      throw new Error("gone");
    }
    await expect(receiveBlob(root, { chunks: broken(), expected: DIGEST })).rejects.toThrow("gone");
    expect(await blobs()).toEqual([]);
  });

  test("may arrive several times at once", async () => {
    const bytes = new Uint8Array(300_000).fill(7);
    const digest = digestOf(bytes);
    const all = Array.from({ length: 5 }, (_, i) => receiveBlob(root, { chunks: inPieces(bytes, 9000 + i) }));
    expect(await Promise.all(all)).toEqual(Array(5).fill({ digest, size: bytes.length }));
    expect(await blobs()).toEqual([blobName(digest)]);
    expect(digestOf(await Bun.file(blobPath(root, digest)).bytes())).toBe(digest);
  });
});

const onUnix = test.skipIf(process.platform === "win32");

/** A file size limit fails writes like a full disk, at the same place. */
onUnix("a full disk is an error that says so, and nothing stays", async () => {
  const program = `
    import { receiveBlob, writeBlob } from "${join(import.meta.dir, "../../../src/library/store/blobs.ts")}";
    async function* chunks() { for (let i = 0; i < 64; i++) yield new Uint8Array(65536); }
    const root = process.argv.at(-1);
    const large = new Uint8Array(2 ** 21);
    for (const write of [() => receiveBlob(root, { chunks: chunks() }), () => writeBlob(root, large)]) {
      console.log(await write().catch((error) => error.code + ": " + error.message));
    }`;
  const limited = `trap "" XFSZ; ulimit -f 1000; exec "$@"`;
  const child = Bun.spawn(["sh", "-c", limited, "sh", process.execPath, "-e", program, "--", root], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const message = `storage: cannot write to '${join(root, "blobs")}': the file is larger than the disk or a limit allows\n`;
  expect(await new Response(child.stdout).text()).toBe(message.repeat(2));
  expect(await blobs()).toEqual([]);
});

test("a store that is a file is an error with its path", async () => {
  const path = join(root, "file");
  await Bun.write(path, "x");
  const received = receiveBlob(path, { chunks: inPieces(BYTES, 5), expected: "" as Digest });
  await expect(received).rejects.toThrow(path);
});
