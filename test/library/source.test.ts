/** Models from a registry at their first use: Debian's docker-registry, and stores of several servers around it. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { makeLibrary } from "../../src/library/create/library.ts";
import { parseAddress } from "../../src/library/registry/address.ts";
import { ensureKey } from "../../src/library/registry/key.ts";
import { makeRegistry } from "../../src/library/registry/registry.ts";
import { LIMITS } from "../../src/library/registry/retry.ts";
import { withSource } from "../../src/library/source.ts";
import { parseReference } from "../../src/library/store/name.ts";
import { openStore, type Store } from "../../src/library/store/store.ts";
import { silent } from "./creating.ts";
import { putModel, tempFolder } from "./fixture.ts";
import { DOCKER_REGISTRY, startDockerRegistry, type RunningRegistry } from "./registry/docker-registry.ts";

/** Size of a model's text, and so of the model. */
const TEXT_BYTES = 50_000;

describe.skipIf(!DOCKER_REGISTRY)("a registry as the source (Debian's docker-registry)", () => {
  let folder: string;
  let registry: RunningRegistry;
  const cleanups: (() => unknown)[] = [];
  beforeAll(async () => {
    folder = await tempFolder();
    registry = await startDockerRegistry(join(folder, "registry"));
    const maker = await node();
    for (const name of ["m", "n", "o", "p"]) {
      await putModel(maker.root, name, { texts: [["system", name.repeat(TEXT_BYTES)]] });
      await maker.push(name);
    }
  }, 60_000);
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });
  afterAll(async () => {
    await registry?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  interface NodeOptions {
    readonly bytesMax?: number;
    readonly inUse?: () => readonly string[];
    readonly now?: () => number;
    readonly root?: string;
    readonly source?: string;
  }

  /** A server's store. */
  async function node({ bytesMax = Infinity, inUse = () => [], now = Date.now, ...places }: NodeOptions = {}) {
    const { source = `http://${registry.host}`, root = join(folder, crypto.randomUUID(), "models") } = places;
    const library = makeLibrary({ root, importDirs: [], noPrune: false, log: silent });
    cleanups.push(library.close);
    const home = join(root, "..");
    await ensureKey(home);
    const limits = { ...LIMITS, backoffMs: 1 };
    const moving = makeRegistry({ library, home, version: "1", limits, source: new URL(source), now });
    const pulls: string[] = [];
    const watched = {
      pull: (transfer: Parameters<typeof moving.pull>[0]) => (
        pulls.push(transfer.address.name.model),
        moving.pull(transfer)
      ),
      has: moving.has,
    };
    const store: Store = withSource({
      store: await openStore(root),
      registry: watched,
      library,
      bytesMax,
      inUse,
      now,
      log: silent,
    });
    const { signal } = new AbortController();
    const push = async (name: string): Promise<void> => {
      for await (const _ of moving.push({ address: parseAddress(name, { insecure: false }), signal }));
    };
    const names = async (): Promise<string[]> => (await store.list()).map((each) => each.displayName).toSorted();
    return { root, store, pulls, push, names };
  }
  const systemOf = async (at: { store: Store }, name: string): Promise<string | undefined> =>
    (await at.store.resolve(name))?.system?.slice(0, 3);
  const sizeOf = async (name: string): Promise<number> => {
    const at = await node();
    return (await at.store.resolve(name))!.sizeBytes;
  };

  test("a pushed model is pulled on another server at its first use, once for simultaneous requests", async () => {
    const at = await node();
    expect(await Promise.all(["m", "M:latest", "m:latest"].map((name) => systemOf(at, name)))).toEqual([
      "mmm",
      "mmm",
      "mmm",
    ]);
    expect(await systemOf(at, "m")).toBe("mmm");
    expect(at.pulls).toEqual(["m"]);
    expect(await at.names()).toEqual(["m:latest"]);
  });

  test("the source is asked for a missing model without a pull", async () => {
    const at = await node();
    const names = ["m", "M:latest", "nobody", "m:none", `${registry.host}/library/m`];
    const offered = await Promise.all(
      names.map((name) => at.store.isOffered!(parseReference(name), AbortSignal.timeout(20_000))),
    );
    expect(offered).toEqual([true, true, false, false, false]);
    expect([at.pulls, await at.names()]).toEqual([[], []]);
  });

  test("a model that the source lacks is not found, and is looked up again only after ten seconds", async () => {
    let nowMs = 0;
    const at = await node({ now: () => nowMs });
    for (const atMs of [0, 9000, 11_000]) {
      nowMs = atMs;
      expect(await at.store.resolve("nobody")).toBeUndefined();
    }
    expect(at.pulls).toEqual(["nobody", "nobody"]);
    expect(await readdir(join(at.root, "cached")).catch(() => [])).toEqual([]);
  });

  test("names with a host and invalid names are not looked up at the source", async () => {
    const at = await node();
    expect(await at.store.resolve(`${registry.host}/library/m`)).toBeUndefined();
    expect(at.store.resolve("../m")).rejects.toThrow("invalid model name");
    expect(at.pulls).toEqual([]);
  });

  test("an unreachable source is an error that says so, while installed models keep working", async () => {
    const root = join(folder, "away", "models");
    await systemOf(await node({ root }), "m");
    for (const cleanup of cleanups.splice(0)) await cleanup();
    const away = await node({ root, source: "http://127.0.0.1:1" });
    expect(await systemOf(away, "m")).toBe("mmm");
    const failing = away.store.resolve("n");
    await expect(failing).rejects.toMatchObject({
      code: "registry",
      message: expect.stringContaining("'n:latest' is not here"),
    });
  });

  test("the least recently used models are evicted, except loaded models and those that a user installed", async () => {
    const bytesMax = Math.floor(2.5 * (await sizeOf("m")));
    let inUse: string[] = [];
    let nowMs = 0;
    const at = await node({ bytesMax, inUse: () => inUse, now: () => nowMs });
    await putModel(at.root, "own", { texts: [["system", "own".repeat(TEXT_BYTES)]] });
    const use = async (name: string): Promise<string[]> => {
      nowMs += 1000;
      await at.store.resolve(name);
      return at.names();
    };
    await use("m");
    await use("n");
    await use("m");
    expect(await use("o")).toEqual(["m:latest", "o:latest", "own:latest"]); // n was used before m was used again
    inUse = ["m:latest"];
    expect(await use("p")).toEqual(["m:latest", "own:latest", "p:latest"]);
    inUse = ["m:latest", "p:latest"];
    await expect(use("n")).rejects.toMatchObject({
      code: "storage",
      message: expect.stringContaining("no room for model 'n:latest'"),
    });
    expect(await at.names()).toEqual(["m:latest", "own:latest", "p:latest"]);
    const blobs = await readdir(join(at.root, "blobs"));
    const named = (await at.store.list()).flatMap(({ layers }) => layers.map(({ digest }) => digest.replace(":", "-")));
    expect(blobs.filter((name) => !named.includes(name)).length).toBe(1); // all share the configuration
  });

  test("eviction removes no model if the new one cannot fit, and none whose blobs another model uses", async () => {
    const bytesMax = Math.floor(2.5 * (await sizeOf("m")));
    let inUse: string[] = [];
    let nowMs = 0;
    const maker = await node();
    const text = (name: string): string => name.repeat(TEXT_BYTES);
    await putModel(maker.root, "twice", { texts: [["system", text("tw")]] });
    await putModel(maker.root, "like-m", { texts: [["system", text("m")]] });
    for (const name of ["twice", "like-m"]) await maker.push(name);
    const at = await node({ bytesMax, inUse: () => inUse, now: () => (nowMs += 1000) });
    for (const name of ["like-m", "m", "n"]) await at.store.resolve(name);
    inUse = ["m:latest"];
    await expect(at.store.resolve("twice")).rejects.toMatchObject({ code: "storage" });
    expect(await at.names()).toEqual(["like-m:latest", "m:latest", "n:latest"]);
    await at.store.resolve("o");
    expect(await at.names()).toEqual(["like-m:latest", "m:latest", "o:latest"]);
  });

  test("the order of use survives a restart, and a model larger than the limit is refused before the download", async () => {
    const bytesMax = Math.floor(2.5 * (await sizeOf("m")));
    const root = join(folder, "again", "models");
    const first = await node({ root, bytesMax, now: () => 1_000_000 });
    await systemOf(first, "m");
    for (const cleanup of cleanups.splice(0)) await cleanup();
    const second = await node({ root, bytesMax, now: () => 2_000_000 });
    await systemOf(second, "n");
    for (const cleanup of cleanups.splice(0)) await cleanup();
    const third = await node({ root, bytesMax, now: () => 3_000_000 });
    await systemOf(third, "o");
    expect(await third.names()).toEqual(["n:latest", "o:latest"]);
    const small = await node({ bytesMax: 1000 });
    await expect(small.store.resolve("m")).rejects.toThrow(
      /'m:latest' takes \d+ bytes, and models.cacheBytes allows 1000/,
    );
    expect(await small.names()).toEqual([]);
  });

  /** The file in which the registry keeps a model's first text layer. */
  async function blobFile(name: string): Promise<string> {
    const at = await node();
    const layer = (await at.store.resolve(name))!.layers.find(({ mediaType }) => mediaType.endsWith(".system"))!;
    const hex = layer.digest.replace("sha256:", "");
    return join(folder, "registry/data/docker/registry/v2/blobs/sha256", hex.slice(0, 2), hex, "data");
  }

  test("a blob that is damaged at the source is retried after growing delays, and evicts no model", async () => {
    const path = await blobFile("o");
    const good = await Bun.file(path).bytes();
    const bytesMax = Math.floor(2.5 * (await sizeOf("m")));
    let nowMs = 0;
    const at = await node({ bytesMax, now: () => nowMs });
    const ask = (name: string, atMs: number): Promise<unknown> => ((nowMs = atMs), at.store.resolve(name));
    const asked = async (atMs: number, message: RegExp): Promise<void> => {
      await expect(ask("o", atMs)).rejects.toMatchObject({ code: "registry", message: expect.stringMatching(message) });
    };
    await Bun.write(
      path,
      good.map((byte) => byte ^ 1),
    );
    try {
      await asked(0, /'o:latest' is not here, and its source fails: digest mismatch/);
      await ask("m", 1000);
      await ask("n", 2000);
      await asked(20_000, /blob sha256:\w+ came once with other content .* asked for again in 40 s$/);
      await asked(61_000, /digest mismatch/);
      await asked(62_000, /came 2 times .* again in 119 s$/);
      await asked(182_000, /digest mismatch/);
      expect(await at.names()).toEqual(["m:latest", "n:latest"]);
    } finally {
      await Bun.write(path, good);
    }
    await asked(183_000, /came 3 times .* again in 239 s$/);
    await ask("o", 422_001);
    expect(await at.names()).toEqual(["n:latest", "o:latest"]);
  });

  test("no model is evicted for one whose blobs are missing or cut short at the source", async () => {
    const path = await blobFile("o");
    const good = await Bun.file(path).bytes();
    const bytesMax = Math.floor(2.5 * (await sizeOf("m")));
    const at = await node({ bytesMax });
    for (const name of ["m", "n"]) await at.store.resolve(name);
    try {
      await Bun.write(path, good.subarray(1));
      await expect(at.store.resolve("o")).rejects.toThrow(`expected ${good.length} bytes`);
      await rm(path);
      await expect(at.store.resolve("o")).rejects.toThrow("the registry has no such blob");
      expect(await at.names()).toEqual(["m:latest", "n:latest"]);
    } finally {
      await Bun.write(path, good);
    }
  });
});
