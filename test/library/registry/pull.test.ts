import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { blobPath } from "../../../src/library/store/blobs.ts";
import { blobName, digestOf } from "../../../src/library/store/digest.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { manifestPath } from "../../../src/library/store/store.ts";
import { startFront, type Front, type Seen } from "./front.ts";
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

const big = noise(1000 * KB, 1);
const small = noise(3 * KB, 2);
const pullAll = (name: string, from = place) => Array.fromAsync(from.pull(name));
const statuses = (steps: { status: string }[]) => steps.map(({ status }) => status);
const files = async () => (await readdir(join(place.root, "blobs"))).sort();
const isBlob = ({ path, method }: Seen): boolean => method === "GET" && path.includes("sha256:");

/** Expects the store to have exactly the front's model, byte for byte. */
async function expectPulled(name: string, model: string, from = place): Promise<void> {
  const manifest = front.manifests.get(`library/${model}:latest`)!;
  expect(await readFile(manifestPath(from.root, parseName(name)))).toEqual(Buffer.from(manifest));
  const { config, layers } = JSON.parse(new TextDecoder().decode(manifest));
  for (const { digest } of [config, ...layers]) {
    expect(digestOf(await readFile(blobPath(from.root, digest)))).toBe(digest);
  }
  const names = await readdir(join(from.root, "blobs"));
  expect(names.filter((name) => !/^sha256-[0-9a-f]{64}$/.test(name))).toEqual([]);
}

describe("POST /api/pull, states:", () => {
  test("every layer has one series of progress, between the manifest and the digest check", async () => {
    const name = publish(front, "m", [big, small]);
    const steps = await pullAll(name);
    const [bigDigest, smallDigest] = [digestOf(big), digestOf(small)];
    const order = statuses(steps).filter((status, i, all) => status !== all[i - 1]);
    expect(order).toEqual([
      "pulling manifest",
      `downloading ${bigDigest}`,
      `downloading ${smallDigest}`,
      expect.stringMatching(/^downloading sha256:[0-9a-f]{64}$/), // the configuration
      "verifying sha256 digest",
      "writing manifest",
      "removing any unused layers",
      "success",
    ]);
    const series = steps.filter(({ digest }) => digest === bigDigest);
    const completed = series.map((step) => step.completed ?? 0);
    expect(completed).toEqual(completed.toSorted((a, b) => a - b));
    expect(series.at(-1)).toEqual({
      status: `downloading ${bigDigest}`,
      digest: bigDigest,
      total: big.length,
      completed: big.length,
    });
    await expectPulled(name, "m");
  });

  test("a layer of several blocks may be split into parts that begin inside a block", async () => {
    const wide = await makePlace({ partBytes: 3_000 * KB });
    try {
      const name = publish(front, "m", [noise(7_001 * KB, 5)]);
      await pullAll(name, wide);
      await expectPulled(name, "m", wide);
    } finally {
      await wide.close();
    }
  });

  test("a layer that is present is reported as complete and not requested again", async () => {
    const name = publish(front, "m", [big]);
    await pullAll(name);
    const before = front.blobRequests().length;
    const steps = await pullAll(name);
    expect(steps[1]).toEqual({
      status: `downloading ${digestOf(big)}`,
      digest: digestOf(big),
      total: big.length,
      completed: big.length,
    });
    expect(statuses(steps).at(-1)).toBe("success");
    expect(front.blobRequests().length).toBe(before);
  });

  test("layers that only the replaced manifest had are removed, and no other blobs", async () => {
    const shared = noise(2 * KB, 7);
    await pullAll(publish(front, "other", [shared]));
    await pullAll(publish(front, "m", [big, shared]));
    const name = publish(front, "m", [small]);
    await pullAll(name);
    expect(await files()).not.toContain(blobName(digestOf(big)));
    expect(await files()).toContain(blobName(digestOf(shared)));
    await expectPulled(name, "m");
  });
});

describe("sources of blobs:", () => {
  test.each([
    ["a registry that answers with parts", {}],
    ["a registry that redirects to a storage host", { redirectBlobs: true }],
    ["a registry that ignores ranges", { ignoreRanges: true }],
    ["a storage host that ignores ranges", { ignoreRanges: true, redirectBlobs: true }],
  ])("%s", async (_, behaviour) => {
    Object.assign(front.behaviour, behaviour);
    const name = publish(front, "m", [big, small, new Uint8Array()]);
    expect(statuses(await pullAll(name)).at(-1)).toBe("success");
    await expectPulled(name, "m");
  });

  test("a large blob is downloaded over several connections", async () => {
    const name = publish(front, "m", [big]);
    let [open, most] = [0, 0];
    const gate = Promise.withResolvers<void>();
    front.behaviour.interfere = (seen, answer) => {
      // the first request reveals that there are parts
      if (!isBlob(seen) || seen.range === "bytes=0-65535") return undefined;
      most = Math.max(most, ++open);
      if (open === 4) gate.resolve();
      return gate.promise.then(answer).finally(() => open--);
    };
    await pullAll(name);
    expect(most).toBeGreaterThanOrEqual(4);
    expect(most).toBeLessThanOrEqual(8);
  });
});

describe("faults:", () => {
  const failureOf = async (name: string): Promise<unknown> => pullAll(name).catch((error: unknown) => error);

  test("a pull with 20 faults of all kinds gives the whole model", async () => {
    front.behaviour.redirectBlobs = true;
    const name = publish(front, "m", [big, noise(500 * KB, 5)]);
    const kinds: ((answer: () => Promise<Response>) => Response | Promise<Response>)[] = [
      () => new Response("overloaded", { status: 500 }),
      () => new Response("bad gateway", { status: 502 }),
      () => new Response("slow down", { status: 429, headers: { "retry-after": "0" } }),
      cutAfter(10 * KB),
      cutAfter(0),
    ];
    let faults = 0;
    const failed = new Map<string, number>();
    front.behaviour.interfere = (seen, answer) => {
      const before = failed.get(`${seen.range}`) ?? 0;
      if (!isBlob(seen) || faults >= 20 || before >= 4) return undefined; // not all for the same bytes
      failed.set(`${seen.range}`, before + 1);
      return kinds[faults++ % kinds.length]!(answer);
    };
    expect(statuses(await pullAll(name)).at(-1)).toBe("success");
    expect(faults).toBe(20);
    await expectPulled(name, "m");
  }, 60_000);

  test("a stalled connection is replaced by a new one", async () => {
    const impatient = await makePlace({ stallMs: 300 });
    const name = publish(front, "m", [big]);
    let stalls = 0;
    front.behaviour.interfere = (seen, answer) =>
      isBlob(seen) && stalls++ < 3 ? answer().then((response) => stallAfter(5 * KB, response)) : undefined;
    try {
      expect(statuses(await pullAll(name, impatient)).at(-1)).toBe("success");
      await expectPulled(name, "m", impatient);
    } finally {
      await impatient.close();
    }
  }, 60_000);

  test("a registry that keeps failing ends the pull after some tries, and received parts are kept", async () => {
    const name = publish(front, "m", [big]);
    front.behaviour.interfere = (seen) =>
      isBlob(seen) && seen.range !== "bytes=0-65535" ? new Response("no", { status: 503 }) : undefined;
    expect(await failureOf(name)).toMatchObject({
      code: "registry",
      message: expect.stringMatching(/^max retries exceeded: .*blob sha256:[0-9a-f]{64}: 503: no$/),
    });
    front.behaviour.interfere = () => undefined;
    front.seen.length = 0;
    await pullAll(name);
    expect(front.seen.map(({ range }) => range)).not.toContain("bytes=0-65535");
    await expectPulled(name, "m");
  });

  test("content with a wrong digest is removed, and the error has both digests", async () => {
    const name = publish(front, "m", [big]);
    const wrong = noise(big.length, 99);
    front.blobs.set(digestOf(big), wrong);
    expect(await failureOf(name)).toMatchObject({
      code: "registry",
      message: `digest mismatch, file must be downloaded again: want ${digestOf(big)}, got ${digestOf(wrong)}`,
    });
    expect((await files()).filter((file) => file.startsWith(blobName(digestOf(big))))).toEqual([]);
    front.blobs.set(digestOf(big), big);
    await pullAll(name);
    await expectPulled(name, "m");
  });

  test.each([
    ["missing manifest", 404, "pull model manifest: file does not exist"],
    ["registry that wants a newer client", 412, "pull model manifest: 412: newer version required"],
  ])("%s: %i", async (_, status, message) => {
    front.behaviour.interfere = () => new Response("newer version required", { status });
    expect(await failureOf(`${front.host}/library/absent`)).toMatchObject({ code: "registry", message });
  });

  test("a web page in place of a manifest", async () => {
    front.behaviour.interfere = () => new Response("\n<!doctype html><title>Log in</title>");
    expect(await failureOf(`${front.host}/library/m`)).toMatchObject({
      code: "registry",
      message: expect.stringContaining(`${front.host} answers with a web page: is it a registry`),
    });
  });

  test("a manifest larger than its limit is not read to the end", async () => {
    front.behaviour.interfere = () => new Response(new Uint8Array(5 * 1024 * KB));
    expect(await failureOf(`${front.host}/library/m`)).toMatchObject({
      code: "registry",
      message: expect.stringContaining("expected at most 4194304 bytes"),
    });
  });

  test("a size in a manifest that differs, or that exceeds the disk, is refused", async () => {
    const name = publish(front, "m", [big]);
    const key = "library/m:latest";
    const text = new TextDecoder().decode(front.manifests.get(key));
    const lie = (size: number) =>
      front.manifests.set(key, new TextEncoder().encode(text.replace(`"size":${big.length}`, `"size":${size}`)));
    lie(big.length + 1);
    expect(await failureOf(name)).toMatchObject({
      message: expect.stringContaining(`expected ${big.length + 1} bytes`),
    });
    lie(Number.MAX_SAFE_INTEGER);
    expect(await failureOf(name)).toMatchObject({
      code: "storage",
      message: expect.stringMatching(/announces 9007199254740991 bytes, the disk has \d+ left$/),
    });
  });

  test.each(["", "{}", '{"config":{}}', "[]", '{"config":{"mediaType":"a","digest":"sha256:../../x","size":1}}'])(
    "an invalid manifest is refused: %j",
    async (text) => {
      front.behaviour.interfere = () => new Response(text);
      expect(await failureOf(`${front.host}/library/m`)).toMatchObject({
        code: "registry",
        message: expect.stringMatching(/^pull model manifest: .+library\/m:latest: /),
      });
    },
  );

  test("endless redirects are refused", async () => {
    front.behaviour.interfere = (seen) => Response.redirect(seen.url.href, 307);
    expect(await failureOf(`${front.host}/library/m`)).toMatchObject({ message: expect.stringContaining("redirects") });
  });
});

describe("resuming:", () => {
  /** Aborts the pull once some of the blob has arrived. */
  async function abortHalfway(name: string): Promise<void> {
    const controller = new AbortController();
    front.behaviour.interfere = (seen, answer) =>
      isBlob(seen) && Number(/=(\d+)/.exec(seen.range ?? "")?.[1]) >= 512 * KB
        ? answer().then((response) => stallAfter(0, response))
        : undefined;
    await expect(
      (async () => {
        for await (const { completed = 0 } of place.pull(name, controller.signal)) {
          if (completed >= 500 * KB) controller.abort();
        }
      })(),
    ).rejects.toMatchObject({ code: "cancelled" });
    front.behaviour.interfere = () => undefined;
    front.seen.length = 0;
  }

  test("a disconnected client stops the download, and the next pull fetches only the rest", async () => {
    const name = publish(front, "m", [big]);
    await abortHalfway(name);
    await pullAll(name);
    const bytes = front.seen.flatMap(({ range }) => {
      const match = /^bytes=(\d+)-(\d+)$/.exec(range ?? "");
      return match && Number(match[2]) > KB ? [Number(match[2]) - Number(match[1]) + 1] : [];
    });
    expect(bytes.reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(big.length - 500 * KB);
    await expectPulled(name, "m");
  });

  test("a registry that ignores ranges continues after the parts received without a gap", async () => {
    const name = publish(front, "m", [big]);
    await abortHalfway(name);
    front.behaviour.ignoreRanges = true;
    const steps = await pullAll(name);
    expect(steps[1]?.completed).toBeGreaterThanOrEqual(500 * KB);
    await expectPulled(name, "m");
  });

  test.each([
    ["no JSON", "half"],
    ["an offset that is not its own", '{"N":1,"Offset":7,"Size":65536,"Completed":65536}'],
    ["more bytes than the part has", '{"N":1,"Offset":65536,"Size":65536,"Completed":65537}'],
    ["negative numbers", '{"N":1,"Offset":65536,"Size":65536,"Completed":-1}'],
  ])("state with %s: the download starts over", async (_, state) => {
    const name = publish(front, "m", [big]);
    await abortHalfway(name);
    await writeFile(`${blobPath(place.root, digestOf(big))}-partial-1`, state);
    await pullAll(name);
    expect(front.seen.map(({ range }) => range)).toContain("bytes=0-65535");
    await expectPulled(name, "m");
  });

  test("a download that another server began is resumed", async () => {
    const name = publish(front, "m", [big]);
    await pullAll(publish(front, "other", [small])); // the folders
    const partial = `${blobPath(place.root, digestOf(big))}-partial`;
    const half = big.length / 2;
    await writeFile(partial, big.slice(0, half + 100));
    await writeFile(`${partial}-0`, `{"N":0,"Offset":0,"Size":${half},"Completed":${half}}`);
    await writeFile(`${partial}-1`, `{"N":1,"Offset":${half},"Size":${half},"Completed":100}`);
    front.seen.length = 0;
    await pullAll(name);
    expect(front.blobRequests()[0]).toEndWith(` bytes=${half + 100}-${big.length - 1}`);
    await expectPulled(name, "m");
  });
});

describe("pulls at the same time:", () => {
  test("share one download: each gets its progress, and every part is requested once", async () => {
    const name = publish(front, "m", [big]);
    const gate = Promise.withResolvers<void>();
    front.behaviour.interfere = (seen, answer) =>
      isBlob(seen) && seen.range === "bytes=65536-131071" ? gate.promise.then(answer) : undefined;
    const watchers = await Promise.all(
      [1, 2, 3].map(async () => {
        const pull = place.pull(name);
        for (let step = await pull.next(); !step.done; step = await pull.next()) {
          if ((step.value.completed ?? 0) > 0) break;
        }
        return pull;
      }),
    ); // it contains all three
    gate.resolve();
    const rests = await Promise.all(watchers.map((pull) => Array.fromAsync(pull)));
    for (const rest of rests) expect(rest.at(-1)).toEqual({ status: "success" });
    const requests = front.blobRequests();
    expect(requests.length).toBe(new Set(requests).size);
    await expectPulled(name, "m");
  });

  test("one that aborts does not stop the others, and the last one does", async () => {
    const name = publish(front, "m", [big]);
    const gate = Promise.withResolvers<void>();
    let cut = 0;
    front.behaviour.interfere = (seen, answer) =>
      isBlob(seen) && seen.range !== "bytes=0-65535" ? gate.promise.then(answer).finally(() => cut++) : undefined;
    const [first, second] = [new AbortController(), new AbortController()];
    const pulls = [first, second].map((controller) => pullUntilAborted(place.pull(name, controller.signal)));
    await Promise.all(pulls.map(({ started }) => started));
    first.abort();
    await expect(pulls[0]!.ended).rejects.toMatchObject({ code: "cancelled" });
    gate.resolve();
    await pulls[1]!.ended;
    await expectPulled(name, "m");
    expect(front.blobRequests().length).toBe(new Set(front.blobRequests()).size);
  });

  function pullUntilAborted(pull: AsyncGenerator<{ completed?: number }, void, void>) {
    const started = Promise.withResolvers<void>();
    const ended = (async () => {
      for await (const { completed = 0 } of pull) if (completed > 0) started.resolve();
    })();
    ended.catch(() => {});
    return { started: started.promise, ended };
  }
});

/** The first bytes of the answer, and then the connection breaks. */
function cutAfter(bytes: number): (answer: () => Promise<Response>) => Promise<Response> {
  return async (answer) => {
    const response = await answer();
    if (response.status !== 206) return new Response("no", { status: 503 }); // a redirect has no content to cut
    const content = await response.bytes();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(content.subarray(0, bytes)),
      pull: (controller) => controller.error(new Error("cut, as this test wants")),
    });
    return new Response(body, { status: 206, headers: response.headers });
  };
}

/** The first bytes of the answer, and then nothing for ever. */
async function stallAfter(bytes: number, response: Response): Promise<Response> {
  const content = await response.bytes();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => void (bytes > 0 && controller.enqueue(content.subarray(0, bytes))),
  });
  return new Response(body, { status: response.status, headers: response.headers });
}
