import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { blobName, digestOf } from "../../src/library/store/digest.ts";
import { openStore } from "../../src/library/store/store.ts";
import { tempFolder } from "./fixture.ts";

let root: string;
beforeEach(async () => void (root = await tempFolder()));
afterEach(() => rm(root, { recursive: true }));

const STORE = join(import.meta.dir, "../../src/library");
/** Writes models for ever: new blobs, and the same manifest again and again. */
const WRITER = `
  const { writeBlob } = await import("${STORE}/store/blobs.ts");
  const { writeManifest, CONFIG_TYPE, mediaType } = await import("${STORE}/store/manifest.ts");
  const { manifestPath } = await import("${STORE}/store/store.ts");
  const { parseName } = await import("${STORE}/store/name.ts");
  const root = process.argv.at(-1);
  for (let n = 0; ; n++) {
    const blob = await writeBlob(root, new Uint8Array(300_000).fill(n));
    const config = await writeBlob(root, new TextEncoder().encode(JSON.stringify({ model_type: String(n) })));
    const layers = Array.from({ length: 200 }, () => ({ mediaType: mediaType("model"), ...blob }));
    await writeManifest(manifestPath(root, parseName("m")), { config: { mediaType: CONFIG_TYPE, ...config }, layers });
    if (n === 0) console.log("writing");
  }`;

/** Starts a program that ends only by `kill -9`, and waits for its first line. */
async function startWriter(program: string): Promise<() => Promise<void>> {
  const writer = Bun.spawn([process.execPath, "-e", program, "--", root], { stdout: "pipe", stderr: "inherit" });
  await writer.stdout.getReader().read();
  return async () => {
    writer.kill("SIGKILL");
    await writer.exited;
  };
}

test("a file does not exist if its writer is killed halfway", async () => {
  const kill = await startWriter(`
    const { writeDurably } = await import("${STORE}/../base/durable.ts");
    await writeDurably(process.argv.at(-1) + "/blob", async (temporary) => {
      await Bun.write(temporary, "half");
      console.log("half");
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    });`);
  await kill();
  expect(await readdir(root)).toEqual([expect.stringMatching(/^\.tmp-/)]);
});

test("a store has only whole blobs and models after its writer is killed", async () => {
  for (const delayMs of [0, 7, 23]) {
    const kill = await startWriter(WRITER); // returns when the first model exists
    await Bun.sleep(delayMs);
    await kill();
    const names = (await readdir(join(root, "blobs"))).filter((name) => !name.startsWith(".tmp-"));
    for (const name of names) {
      const digest = digestOf(await Bun.file(join(root, "blobs", name)).bytes());
      expect(blobName(digest)).toBe(name);
    }
    const bad: string[] = [];
    const store = await openStore(root);
    expect(await store.list((path) => bad.push(path))).toHaveLength(1);
    expect(bad).toEqual([]);
    expect((await store.load("m")).config.model_type).toMatch(/^\d+$/);
  }
});
