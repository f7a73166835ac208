/** Registries, and proxies before them, with unusual answers: readable ones work, the rest gives one clear line. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { blobPath, writeBlob } from "../../../src/library/store/blobs.ts";
import { digestOf } from "../../../src/library/store/digest.ts";
import { CONFIG_TYPE, mediaType, writeManifest } from "../../../src/library/store/manifest.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { manifestPath } from "../../../src/library/store/store.ts";
import { startFront, type Front } from "./front.ts";
import { KB, makePlace, noise, publish, type Place } from "./place.ts";

let front: Front;
let place: Place;
beforeEach(async () => {
  front = startFront();
  place = await makePlace();
});
afterEach(async () => {
  await front.stop();
  await place.close();
});

const lastOf = async (steps: AsyncGenerator<{ status: string }>) => (await Array.fromAsync(steps)).at(-1)?.status;
const utf8 = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** Puts a manifest of these bytes on the front. @returns its name, for pulling */
function publishText(text: string): string {
  front.manifests.set("library/m:latest", utf8(text));
  return `${front.host}/library/m`;
}

describe("several challenges in one answer:", () => {
  const orders = [
    ["Basic first", (bearer: string) => ['Basic realm="users, and Bearer realm"', bearer]],
    ["Bearer first", (bearer: string) => [bearer, 'Basic realm="users"', "Negotiate"]],
  ] as const;
  test.each(orders)("the Bearer challenge is answered, %s", async (_, challenges) => {
    const name = publish(front, "m", [noise(KB, 1)]);
    const bearer = `Bearer realm="http://${front.host}/token", service="a"`;
    front.behaviour.interfere = ({ path, authorization }) => {
      if (path === "/token") return Response.json({ token: "t" });
      if (authorization === "Bearer t") return undefined;
      const headers = challenges(bearer).map((each): [string, string] => ["www-authenticate", each]);
      return new Response(null, { status: 401, headers });
    };
    expect(await lastOf(place.pull(name))).toBe("success");
    expect(
      front.seen.filter(({ path }) => path === "/token").map(({ url }) => url.searchParams.get("service")),
    ).toEqual(["a"]);
  });
});

describe("a Retry-After header", () => {
  test("with a date delays the next request until then", async () => {
    const name = publish(front, "m", [noise(KB, 1)]);
    let until = 0;
    const askedAt: number[] = [];
    front.behaviour.interfere = () => {
      if (askedAt.push(Date.now()) > 1) return undefined;
      until = (Math.floor(Date.now() / 1000) + 2) * 1000; // a date has whole seconds
      return new Response("slower", { status: 429, headers: { "retry-after": new Date(until).toUTCString() } });
    };
    expect(await lastOf(place.pull(name))).toBe("success");
    expect(askedAt[1]).toBeGreaterThanOrEqual(until);
  });
});

describe("an unrequested gzip answer", () => {
  const zipped = (text: string, status = 200): Response =>
    new Response(gzipSync(text), { status, headers: { "content-encoding": "gzip" } });

  test("is decompressed in a manifest and in an error", async () => {
    const name = publish(front, "m", [noise(KB, 1)]);
    const manifest = new TextDecoder().decode(front.manifests.get("library/m:latest"));
    front.behaviour.interfere = ({ path }) => (path.includes("/manifests/") ? zipped(manifest) : undefined);
    expect(await lastOf(place.pull(name))).toBe("success");
    front.behaviour.interfere = () => zipped('{"errors":[{"message":"not yours"}]}', 403);
    await expect(lastOf(place.pull(name))).rejects.toThrow("pull model manifest: 403: not yours");
  });

  test("is an error if it exceeds the limit or is not gzip", async () => {
    front.behaviour.interfere = () => zipped(" ".repeat(5 * 1024 * KB));
    const name = `${front.host}/library/m`;
    await expect(lastOf(place.pull(name))).rejects.toThrow(/expected an answer in gzip of at most 4194304 bytes/);
    front.behaviour.interfere = () => new Response("{}", { headers: { "content-encoding": "gzip" } });
    await expect(lastOf(place.pull(name))).rejects.toThrow(/expected an answer in gzip/);
  });
});

test("a registry's message becomes one line without control characters", async () => {
  for (const body of [JSON.stringify({ errors: [{ message: "a\u001b[2Jb\nc\u202ed " }] }), "a\u001b[2Jb\nc\u202ed "]) {
    front.behaviour.interfere = () => new Response(body, { status: 403 });
    await expect(lastOf(place.pull(`${front.host}/library/m`))).rejects.toThrow("manifest: 403: a [2Jb c d");
    const said = await lastOf(place.pull(`${front.host}/library/m`)).catch((error: Error) => error.message);
    for (const obeyed of ["\n", "\u001b", "\u202e"]) expect(said).not.toContain(obeyed);
  }
});

test("an index of several manifests is refused by that name", async () => {
  const mediaType = "application/vnd.oci.image.index.v1+json";
  const name = publishText(JSON.stringify({ schemaVersion: 2, mediaType, manifests: [{}, {}] }));
  await expect(lastOf(place.pull(name))).rejects.toThrow(
    /library\/m:latest: expected the manifest of one model, got an index of 2 manifests$/,
  );
});

test("empty, repeated and unknown layers are pulled unchanged", async () => {
  const layer = (type: string, bytes: Uint8Array<ArrayBuffer>) => ({ mediaType: type, ...front.put(bytes) });
  const license = layer(mediaType("license"), new Uint8Array(0));
  const weights = layer(mediaType("model"), noise(KB, 3));
  const layers = [license, license, weights, weights, layer("application/vnd.example.new", noise(9, 4))];
  const config = { mediaType: CONFIG_TYPE, ...front.put(utf8("{}")) };
  expect(await lastOf(place.pull(publishText(JSON.stringify({ config, layers }))))).toBe("success");
  for (const { digest, size } of layers) expect(Bun.file(blobPath(place.root, digest as never)).size).toBe(size);
  expect(front.blobRequests().length).toBe(3); // an empty range causes no request
});

describe("a registry that lost the first bytes of an upload", () => {
  const silent = (): Response => new Response(null, { status: 204 });
  test.each([
    ["says 0-0", undefined],
    ["says no range", silent],
  ])("and %s gets it again from the first byte", async (_, status) => {
    const name = `${front.host}/library/m`;
    const bytes = noise(150 * KB, 5);
    const blob = await writeBlob(place.root, bytes);
    const config = await writeBlob(place.root, utf8("{}"));
    await writeManifest(manifestPath(place.root, parseName(name)), {
      config: { mediaType: CONFIG_TYPE, ...config },
      layers: [{ mediaType: mediaType("model"), ...blob }],
    });
    const chunks: string[] = [];
    front.behaviour.interfere = ({ method, path, headers }) => {
      if (method === "GET" && path.includes("/uploads/")) return status?.();
      if (method !== "PATCH") return undefined;
      return chunks.push(headers.get("content-range") ?? "") === 1 ? new Response("busy", { status: 503 }) : undefined;
    };
    expect(await lastOf(place.push(name))).toBe("success");
    expect(chunks).toEqual(["0-102399", "0-102399", "102400-153599", "0-1"]);
    expect(Buffer.from(front.blobs.get(digestOf(bytes))!)).toEqual(Buffer.from(bytes));
  });
});

test.each(["application/vnd.docker.image.rootfs.diff.tar.gzip", "application/vnd.oci.image.layer.v1.tar+gzip"])(
  "a container image with layers '%s' is refused before a layer is fetched",
  async (type) => {
    const layer = { mediaType: type, digest: digestOf(noise(KB, 1)), size: KB };
    const config = { mediaType: CONFIG_TYPE, digest: digestOf(utf8("{}")), size: 2 };
    const name = publishText(JSON.stringify({ schemaVersion: 2, config, layers: [layer, layer] }));
    await expect(lastOf(place.pull(name))).rejects.toThrow(`is not a model but a container image: its layers are of`);
    expect(front.seen.filter(({ path }) => path.includes("/blobs/"))).toEqual([]);
  },
);
