import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { blobPath, writeBlob } from "../../../src/library/store/blobs.ts";
import { digestOf } from "../../../src/library/store/digest.ts";
import { CONFIG_TYPE, mediaType, readManifest, writeManifest } from "../../../src/library/store/manifest.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { manifestPath } from "../../../src/library/store/store.ts";
import { parseAddress } from "../../../src/library/registry/address.ts";
import { makeClient, type RegistryClient } from "../../../src/library/registry/client.ts";
import { makeFindMount } from "../../../src/library/registry/mounts.ts";
import { LIMITS } from "../../../src/library/registry/retry.ts";
import { hasNginx, startNginx } from "../../e2e/nginx.ts";
import { DOCKER_REGISTRY, startDockerRegistry, type RunningRegistry } from "./docker-registry.ts";
import { startFront, type Front } from "./front.ts";
import { KB, makePlace, noise, type Place } from "./place.ts";

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

const big = noise(350 * KB, 11); // four chunks
const small = noise(3 * KB, 12);
const pushAll = (name: string) => Array.fromAsync(place.push(name));
const statuses = (steps: { status: string }[]) => steps.map(({ status }) => status);

/** @param from origin of the first layer */
async function putModel(name: string, layers: readonly Uint8Array[], from?: string): Promise<void> {
  const blobs = [];
  for (const bytes of layers) blobs.push(await writeBlob(place.root, bytes));
  const config = await writeBlob(place.root, new TextEncoder().encode('{"model_format":"gguf"}'));
  await writeManifest(manifestPath(place.root, parseName(name)), {
    config: { mediaType: CONFIG_TYPE, ...config },
    layers: blobs.map((blob, i) => ({ mediaType: mediaType("model"), ...blob, ...(from && i === 0 ? { from } : {}) })),
  });
}

/** Expects another store that pulls the model to have the same files. */
async function expectSameElsewhere(name: string): Promise<void> {
  const other = await makePlace();
  try {
    for await (const _ of other.pull(name));
    const path = (root: string) => manifestPath(root, parseName(name));
    expect(await readFile(path(other.root))).toEqual(await readFile(path(place.root)));
    const { config, layers } = await readManifest(path(place.root));
    for (const { digest } of [config, ...layers]) {
      expect(await readFile(blobPath(other.root, digest))).toEqual(await readFile(blobPath(place.root, digest)));
    }
  } finally {
    await other.close();
  }
}

describe("POST /api/push, states:", () => {
  test("each layer reports its upload and progress, and then the manifest is pushed", async () => {
    const name = `${front.host}/library/m`;
    await putModel(name, [big, small]);
    const steps = await pushAll(name);
    expect(statuses(steps).filter((status, i, all) => status !== all[i - 1])).toEqual([
      "retrieving manifest",
      "starting upload",
      "pushing manifest",
      "success",
    ]);
    const series = steps.filter(({ digest }) => digest === digestOf(big));
    expect(series[0]).toEqual({ status: "starting upload", digest: digestOf(big), total: big.length });
    expect(series.at(-1)).toEqual({ ...series[0]!, completed: big.length });
    expect(new Set(steps.flatMap(({ digest }) => digest ?? [])).size).toBe(3);
    await expectSameElsewhere(name);
  });

  test("a missing model is an error", async () => {
    const steps: { status: string }[] = [];
    const push = (async () => {
      for await (const step of place.push(`${front.host}/library/absent`)) steps.push(step);
    })();
    await expect(push).rejects.toMatchObject({ code: "not_found", message: expect.stringContaining("absent:latest") });
    expect(statuses(steps)).toEqual(["retrieving manifest", "couldn't retrieve manifest"]);
    expect(front.seen).toEqual([]);
  });
});

describe("blobs:", () => {
  test("a blob that the registry has is not sent", async () => {
    const name = `${front.host}/library/m`;
    await putModel(name, [big, small]);
    front.put(big);
    await pushAll(name);
    const sent = front.seen
      .filter(({ method }) => method === "PATCH")
      .map(({ headers }) => headers.get("content-range"));
    expect(sent).toEqual([`0-${small.length - 1}`, "0-22"]);
  });

  test("a blob in another repository of the registry is mounted", async () => {
    const name = `${front.host}/library/m`;
    await putModel(name, [big], `${front.host}/library/base:latest`);
    // in the registry, but not in this repository
    front.behaviour.interfere = (seen) => (seen.method === "HEAD" ? new Response(null, { status: 404 }) : undefined);
    front.put(big);
    await pushAll(name);
    const begun = front.seen.filter(({ method }) => method === "POST").map(({ url }) => url.searchParams.get("mount"));
    expect(begun).toEqual([digestOf(big), null]);
    expect(front.seen.filter(({ method }) => method === "PATCH").length).toBe(1); // the configuration
  });

  test("chunks follow redirects to storage without the token, and the upload ends with their MD5", async () => {
    front.behaviour.redirectUploads = true;
    const key = await readFile(`${place.home}/id_ed25519.pub`, "utf8");
    front.behaviour.tokensFor = key.trim().split(" ")[1];
    const name = `${front.host}/library/m`;
    await putModel(name, [big]);
    await pushAll(name);
    expect(Buffer.from(front.blobs.get(digestOf(big))!)).toEqual(Buffer.from(big));
    const puts = front.seen.filter(({ at }) => at === "storage");
    const lengths = puts.map(({ headers }) => Number(headers.get("content-length")));
    expect(lengths).toEqual([102400, 102400, 102400, 51200, 23]);
    expect(puts.map(({ authorization }) => authorization)).toEqual([null, null, null, null, null]);
    const md5 = (bytes: Uint8Array) => new Bun.CryptoHasher("md5").update(bytes).digest();
    const tags = [0, 1, 2, 3].map((i) => md5(big.subarray(i * 100 * KB, (i + 1) * 100 * KB)));
    const etag = front.seen.find(({ url }) => url.searchParams.get("digest") === digestOf(big))!.url.searchParams;
    expect(etag.get("etag")).toBe(`${md5(Buffer.concat(tags)).toString("hex")}-4`);
  });

  test("a registry with occasional errors gets every byte once", async () => {
    const name = `${front.host}/library/m`;
    await putModel(name, [big, small]);
    let requests = 0;
    front.behaviour.interfere = (seen, answer) => {
      if (requests++ % 3 === 0) return new Response("overloaded", { status: 503 });
      if (seen.method !== "PATCH" || requests % 2 === 0) return undefined;
      return answer().then(() => new Response("lost the answer", { status: 502 })); // the registry has the chunk
    };
    expect(statuses(await pushAll(name)).at(-1)).toBe("success");
    front.behaviour.interfere = () => undefined;
    await expectSameElsewhere(name);
  });

  test("an upload that the registry forgets is restarted", async () => {
    const name = `${front.host}/library/m`;
    await putModel(name, [big]);
    let forgotten = 0;
    front.behaviour.interfere = (seen) =>
      seen.method === "PATCH" && seen.headers.get("content-range")?.startsWith("204800-") && forgotten++ === 0
        ? Response.json({ errors: [{ message: "upload unknown" }] }, { status: 404 })
        : undefined;
    expect(statuses(await pushAll(name)).at(-1)).toBe("success");
    expect(forgotten).toBe(2);
    await expectSameElsewhere(name);
  });

  test("an error from the registry is reported", async () => {
    const name = `${front.host}/library/m`;
    await putModel(name, [small]);
    front.behaviour.interfere = (seen) =>
      seen.path.includes("/manifests/")
        ? Response.json({ errors: [{ code: "DENIED", message: "not your namespace" }] }, { status: 403 })
        : undefined;
    await expect(pushAll(name)).rejects.toMatchObject({
      code: "registry",
      message: "push model manifest: 403: not your namespace",
    });
  });

  test("a 404 for an unusual name names the rule for names, and a registry that accepts the name gets it", async () => {
    const name = `${front.host}/Library/My.Model`;
    await putModel(name, [small]);
    const sent: string[] = [];
    front.behaviour.interfere = (seen) => {
      sent.push(seen.method);
      return new Response("404 page not found\n", { status: 404 });
    };
    await expect(pushAll(name)).rejects.toMatchObject({
      code: "registry",
      message:
        `${front.host} takes no model 'Library/My.Model': registries expect names of lowercase letters and digits, ` +
        "single '.', '_' or '-' between them; give it such a name with 'hearth cp', and push that",
    });
    expect(sent).toEqual(["HEAD", "POST"]);
    await putModel(`${front.host}/library/m`, [small]);
    await expect(pushAll(`${front.host}/library/m`)).rejects.toThrow("404 page not found");
    front.behaviour.interfere = () => undefined;
    expect(statuses(await pushAll(name)).at(-1)).toBe("success");
  });

  test("a push to a failing registry ends after as many tries as a pull, and after more once a request succeeded", async () => {
    const name = `${front.host}/library/m`;
    await putModel(name, [small, big]);
    const asked: string[] = [];
    front.behaviour.interfere = (seen) => {
      if (seen.method !== "HEAD") return undefined;
      asked.push(seen.path);
      return new Response("no", { status: 503 });
    };
    await expect(pushAll(name)).rejects.toMatchObject({ code: "registry" });
    expect(asked.length).toBe(3);
    asked.length = 0;
    front.behaviour.interfere = (seen) => {
      if (seen.method !== "HEAD") return undefined;
      asked.push(seen.path);
      return new Set(asked).size === 1 ? undefined : new Response("no", { status: 503 });
    };
    await expect(pushAll(name)).rejects.toMatchObject({ code: "registry" });
    expect(asked.length).toBe(1 + LIMITS.tries);
  });

  test("a disconnected client stops the upload", async () => {
    const name = `${front.host}/library/m`;
    await putModel(name, [big]);
    const controller = new AbortController();
    front.behaviour.interfere = (seen) => (seen.method === "PATCH" ? new Promise<Response>(() => {}) : undefined);
    const push = (async () => {
      for await (const { completed = 0 } of place.push(name, controller.signal)) if (completed > 0) controller.abort();
    })();
    await expect(push).rejects.toMatchObject({ code: "cancelled" });
    expect(front.manifests.size).toBe(0);
  });
});

test.skipIf(!DOCKER_REGISTRY)("docker-registry: an empty store pulls a pushed model byte for byte", async () => {
  const registry = await startDockerRegistry(`${place.home}/registry`);
  try {
    const name = `${registry.host}/someone/m:tag`;
    await putModel(name, [big, small]);
    expect(statuses(await pushAll(name)).at(-1)).toBe("success");
    await expectSameElsewhere(name);
    await putModel(`${registry.host}/someone/copy`, [big], name); // mounted
    expect(statuses(await pushAll(`${registry.host}/someone/copy`)).at(-1)).toBe("success");
    await expectSameElsewhere(`${registry.host}/someone/copy`);
    await putModel(`${registry.host}/someone/Model`, [big]);
    await expect(pushAll(`${registry.host}/someone/Model`)).rejects.toThrow("expect names of lowercase letters");
  } finally {
    await registry.stop();
  }
});

test("the public registry gets no names of models without a host, but a configured source does", async () => {
  for (const model of ["secret", "b"]) await putModel(model, [small]);
  const address = parseAddress("b", { insecure: false });
  const asked: string[] = [];
  const askedBy = async (base: URL): Promise<string[]> => {
    const readKey = () => Promise.reject(new Error("no key"));
    const { signal } = new AbortController();
    const client: RegistryClient = {
      ...makeClient({ address: { ...address, base }, readKey, userAgent: "test", limits: LIMITS, signal }),
      send: async ({ url }) => (asked.push(url.pathname), new Response(null, { status: 404 })),
    };
    const blob = { mediaType: mediaType("model"), digest: digestOf(small), size: small.length };
    expect(await makeFindMount(client, [place.root])(blob)).toBeUndefined();
    return asked;
  };
  expect(await askedBy(address.base)).toEqual([]);
  expect(await askedBy(new URL("http://127.0.0.1:1/"))).toEqual([`/v2/library/secret/blobs/${digestOf(small)}`]);
});

describe.skipIf(!DOCKER_REGISTRY)("docker-registry: a second name for the same weights", () => {
  let registry: RunningRegistry;
  let proxy: Bun.Server<undefined>;
  let seen: string[];
  /** Answers in place of the registry. */
  let interfere: (asked: string) => Response | undefined;
  beforeEach(async () => {
    registry = await startDockerRegistry(`${place.home}/registry`);
    seen = [];
    interfere = () => undefined;
    proxy = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        const { pathname, search } = new URL(request.url);
        const mount = search.includes("mount=") ? " mount" : "";
        const asked = `${request.method}${mount} ${pathname.replace(/sha256:.*|uploads\/.*/, "")}`;
        seen.push(asked);
        const headers = new Headers(request.headers);
        headers.delete("host");
        const { method } = request;
        const body = await request.bytes();
        return (
          interfere(asked) ??
          fetch(`http://${registry.host}${pathname}${search}`, { method, headers, redirect: "manual", body })
        );
      },
    });
  }, 60_000);
  afterEach(async () => {
    await proxy.stop(true);
    await registry.stop();
  });
  const name = (model: string): string => `127.0.0.1:${proxy.port}/someone/${model}`;
  const sends = (): string[] => seen.splice(0).filter((line) => /PATCH|mount/.test(line));

  test("is mounted from the first name, and only new blobs are sent", async () => {
    await putModel(name("a"), [big]);
    await pushAll(name("a"));
    expect(sends().length).toBeGreaterThan(0);
    await putModel(name("b"), [big, small]);
    expect(statuses(await pushAll(name("b"))).at(-1)).toBe("success");
    const mount = "POST mount /v2/someone/b/blobs/";
    expect(sends()).toEqual([mount, "PATCH /v2/someone/b/blobs/", mount]); // weights, the new layer, the configuration
    await expectSameElsewhere(name("b"));
  });

  test("is sent if the registry lacks the first name or refuses to mount", async () => {
    await putModel(name("a"), [small]);
    await putModel(name("b"), [small]);
    await pushAll(name("b"));
    expect(sends()).toEqual(["PATCH /v2/someone/b/blobs/", "PATCH /v2/someone/b/blobs/"]);
    interfere = (asked) => (asked.includes("mount") ? new Response("no", { status: 403 }) : undefined);
    await putModel(name("c"), [small]);
    await pushAll(name("c"));
    const [mount, patch] = ["POST mount /v2/someone/c/blobs/", "PATCH /v2/someone/c/blobs/"];
    expect(sends()).toEqual([mount, patch, mount, patch]);
    await expectSameElsewhere(name("c"));
  });
});

test.skipIf(!DOCKER_REGISTRY || !hasNginx)(
  "through a proxy with a body limit, chunks become smaller; if none is small enough, the proxy's error is reported",
  async () => {
    const registry = await startDockerRegistry(`${place.root}/registry`);
    const proxied = `location / { proxy_pass http://${registry.host}; proxy_set_header Host $http_host; }`;
    const nginxOf = (most: string) => startNginx(`client_max_body_size ${most}; ${proxied}`);
    const [narrow, tight] = await Promise.all([nginxOf("70k"), nginxOf("1k")]);
    try {
      const name = `127.0.0.1:${narrow.port}/library/m`;
      await putModel(name, [noise(700 * KB, 21), small]);
      expect(statuses(await pushAll(name)).at(-1)).toBe("success");
      await expectSameElsewhere(name);
      const refused = `127.0.0.1:${tight.port}/library/m`;
      await putModel(refused, [noise(700 * KB, 22)]);
      await expect(pushAll(refused)).rejects.toThrow(/upload of sha256:\w+: 413: .*Request Entity Too Large/);
    } finally {
      await Promise.all([narrow.stop(), tight.stop()]);
      await registry.stop();
    }
  },
  30_000,
);

test("a registry that refuses HEAD gets all blobs", async () => {
  const name = `${front.host}/library/m`;
  await putModel(name, [small]);
  front.behaviour.interfere = ({ method }) => (method === "HEAD" ? new Response(null, { status: 405 }) : undefined);
  expect(statuses(await pushAll(name)).at(-1)).toBe("success");
});
