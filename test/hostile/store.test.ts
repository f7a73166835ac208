/** A damaged store: intact models are served, damage is logged, and nothing is deleted. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
} from "node:fs";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { blobPath } from "../../src/library/store/blobs.ts";
import { CONFIG_TYPE, mediaType, readManifest } from "../../src/library/store/manifest.ts";
import { parseName } from "../../src/library/store/name.ts";
import { manifestPath } from "../../src/library/store/store.ts";
import { startHearth, type Hearth } from "../e2e/hearth.ts";
import { createVariants } from "../e2e/variants.ts";

setDefaultTimeout(120_000);

let home = "";
let root = "";
let hearth: Hearth;

const pathOf = (name: string): string => manifestPath(root, parseName(name));
const weightsOf = async (name: string): Promise<string> =>
  blobPath(root, (await readManifest(pathOf(name))).layers[0]!.digest);
const blobs = (): string[] => readdirSync(join(root, "blobs")).sort();

function put(name: string, content: string | Uint8Array): void {
  mkdirSync(dirname(pathOf(name)), { recursive: true });
  writeFileSync(pathOf(name), content);
}

const NOWHERE = `sha256:${"ab".repeat(32)}`;
const layer = (digest: string, size: number) => ({ mediaType: mediaType("model"), digest, size });
const config = (digest: string, size: number) => ({ mediaType: CONFIG_TYPE, digest, size });

/** Names of invalid manifests, and the log's words about each. */
const BROKEN: Readonly<Record<string, { make: (name: string) => void; reason: string }>> = {
  empty: { make: (name) => put(name, ""), reason: "not JSON" },
  torn: { make: (name) => put(name, '{"config":{"dig'), reason: "not JSON" },
  binary: { make: (name) => put(name, new Uint8Array(4096).fill(0xff)), reason: "not JSON" },
  list: { make: (name) => put(name, "[]"), reason: "expected an object" },
  deep: { make: (name) => put(name, "[".repeat(1e6)), reason: "not JSON" },
  huge: {
    make: (name) => {
      put(name, "{");
      // sparse: it takes no space on the disk, and would take all of the memory
      truncateSync(pathOf(name), 64 * 2 ** 30);
    },
    reason: "expected at most 4194304 bytes",
  },
  climbing: {
    make: (name) => put(name, JSON.stringify({ config: config("sha256:../../../../etc/passwd", 1), layers: [] })),
    reason: "config.digest: expected sha256:<64 hex digits>",
  },
  endless: {
    make: (name) => {
      mkdirSync(dirname(pathOf(name)), { recursive: true });
      symlinkSync("/dev/zero", pathOf(name));
    },
    reason: "expected a file",
  },
  silent: {
    make: (name) => {
      mkdirSync(dirname(pathOf(name)), { recursive: true });
      expect(Bun.spawnSync(["mkfifo", pathOf(name)]).exitCode).toBe(0);
    },
    reason: "expected a file",
  },
  unfounded: {
    make: (name) => put(name, JSON.stringify({ config: config(NOWHERE, 5), layers: [layer(NOWHERE, 5)] })),
    reason: `${NOWHERE}, found no such blob`,
  },
};

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "hearth-broken-"));
  root = join(home, ".hearth/models");
  hearth = await startHearth({ home });
  await createVariants(hearth, ["a", "b", "c", "d"]);
  await hearth.stop();
  truncateSync(await weightsOf("d"), 1000);
  for (const [name, { make }] of Object.entries(BROKEN)) make(name);
  const orphan = blobPath(root, NOWHERE.replaceAll("ab", "cd") as Parameters<typeof blobPath>[1]); // is a digest
  writeFileSync(orphan, "nobody's");
  for (const name of blobs()) utimesSync(join(root, "blobs", name), 1e9, 1e9);
  hearth = await startHearth({ home });
});
afterAll(async () => {
  await hearth.stop();
  rmSync(home, { recursive: true });
});

const tags = async (): Promise<string[]> => {
  const { models } = (await (await fetch(`${hearth.url}/api/tags`)).json()) as { models: { name: string }[] };
  return models.map(({ name }) => name);
};
const logged = (text: string): boolean => hearth.log().some((line) => line.includes(text));

async function answer(model: string): Promise<{ status: number; body: any }> {
  const request = { model, prompt: "Hello!", stream: false, options: { num_predict: 2 }, keep_alive: 0 };
  const response = await hearth.post("/api/generate", request); // loads anew each time
  return { status: response.status, body: await response.json() };
}

test("invalid manifests are left out of the list, and the log names each with its fault", async () => {
  const listed = await tags();
  expect(listed).toEqual(expect.arrayContaining(["a:latest", "b:latest", "d:latest", "hearth:latest"]));
  expect(listed.filter((name) => name.replace(":latest", "") in BROKEN)).toEqual([]);
  for (const [name, { reason }] of Object.entries(BROKEN)) {
    const line = hearth.log().find((each) => each.includes("left out") && each.includes(pathOf(name)));
    expect([name, line !== undefined && JSON.parse(line).reason]).toEqual([name, expect.stringContaining(reason)]);
  }
});

test("every endpoint answers 500 for the model of an invalid manifest", async () => {
  for (const name of Object.keys(BROKEN)) {
    for (const path of ["/api/generate", "/api/show", "/api/embed", "/v1/chat/completions"]) {
      const messages = [{ role: "user", content: "Hello!" }];
      const response = await hearth.post(path, { model: name, input: "Hello!", messages, prompt: "Hello!" });
      expect([name, path, response.status]).toEqual([name, path, 500]);
      expect(JSON.stringify(await response.json())).toContain(BROKEN[name]!.reason.slice(0, 20));
    }
    if (name === "unfounded") continue; // a manifest like any other
    expect((await hearth.post("/api/copy", { source: name, destination: "copied" })).status).toBe(500);
    expect((await hearth.post("/api/push", { model: name, stream: false })).status).toBe(500);
  }
  expect((await answer("hearth")).status).toBe(200);
});

test("while a manifest cannot be read, neither a start nor a delete removes a blob", async () => {
  const before = blobs();
  const body = JSON.stringify({ model: "c" });
  expect((await fetch(`${hearth.url}/api/delete`, { method: "DELETE", body })).status).toBe(200);
  expect([blobs(), (await tags()).includes("c:latest")]).toEqual([before, false]);
  expect(logged("no blobs are removed: a manifest cannot be read")).toBe(true);
});

test("a model whose blob is truncated is listed, logged and refused, and other models are served", async () => {
  expect(await tags()).toContain("d:latest");
  const line = hearth.log().find((each) => each.includes("cannot be inspected") && each.includes("d:latest"));
  expect(line).toContain("found 1000 bytes");
  const { status, body } = await answer("d");
  expect([status, body.error]).toEqual([500, expect.stringMatching(/d:latest.*expected 6272960 bytes .*1000 bytes/)]);
  expect((await answer("a")).status).toBe(200);
});

test("a model whose blob has a corrupt header gets an error that names the blob, and other models are served", async () => {
  const weights = await weightsOf("b");
  const whole = readFileSync(weights);
  try {
    for (const [at, bytes] of [
      [0, [0, 0, 0, 0]], // no GGUF
      [8, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]], // tensors without end
      [16, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]], // keys without end
      [24, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]], // a key without end
    ] as const) {
      const broken = Buffer.from(whole);
      broken.set(bytes, at);
      writeFileSync(weights, broken);
      const { status, body } = await answer("b");
      expect([at, status, body.error]).toEqual([
        at,
        500,
        expect.stringContaining(`models/blobs/${basename(weights)}: `),
      ]);
    }
    expect((await answer("a")).status).toBe(200);
  } finally {
    writeFileSync(weights, whole);
  }
});
