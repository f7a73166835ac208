import { afterEach, beforeEach, expect, test } from "bun:test";
import { Ollama } from "ollama";
import { mkdtempSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestOf } from "../../src/library/store/digest.ts";
import { DOCKER_REGISTRY, startDockerRegistry } from "../library/registry/docker-registry.ts";
import { startFront, type Front } from "../library/registry/front.ts";
import { noise, publish } from "../library/registry/place.ts";
import { eventually, ndjson, startHearth, type Hearth } from "./hearth.ts";

let front: Front;
let home: string;
let hearth: Hearth;
beforeEach(async () => {
  front = startFront();
  home = mkdtempSync(join(tmpdir(), "hearth-registry-"));
  hearth = await startHearth({ home });
}, 60_000);
afterEach(async () => {
  await hearth.stop();
  await front.stop();
  await rm(home, { recursive: true });
}, 60_000);

const MB = 1024 * 1024;
const big = noise(6 * MB, 3);
const blobs = () => join(home, ".hearth", "models", "blobs");
const names = async (): Promise<string[]> => {
  const { models } = (await (await fetch(`${hearth.url}/api/tags`)).json()) as { models: { name: string }[] };
  return models.map(({ name }) => name);
};

/** From here on the registry's front sends the first megabytes of a blob at once and the rest in drops. */
function dribble(): void {
  front.behaviour.interfere = async (seen, answer) => {
    const response = await answer();
    if (!seen.path.includes(digestOf(big))) return response;
    const content = await response.bytes();
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (sent > 0) await Bun.sleep(50);
        const next = sent === 0 ? 3 * MB : sent + 1024;
        controller.enqueue(content.subarray(sent, next));
        sent = next;
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

/** Offset at which the next download of the blob resumes, after a request for its head. */
async function resumesAt(name: string): Promise<number> {
  front.behaviour.interfere = () => undefined;
  front.seen.length = 0;
  const steps = await Array.fromAsync(ndjson(await hearth.post("/api/pull", { model: name, insecure: true })));
  expect(steps.at(-1)).toEqual({ status: "success" });
  const ranges = front.seen.filter(({ path }) => path.includes(digestOf(big))).map(({ range }) => range ?? "bytes=0-");
  const [head, next] = ranges.map((range) => /^bytes=(\d+)-(\d*)/.exec(range)!.slice(1).map(Number));
  expect(head![0] === 0 && head![1]! < MB).toBe(true); // the head is read to check that the model can run
  return next![0]!;
}

/** True if the download's state file records this many bytes as safe. */
const isKept = async (bytes: number): Promise<boolean> => {
  const state = (await readdir(blobs())).find((file) => file.endsWith("-partial-0"));
  return state !== undefined && (await Bun.file(join(blobs(), state)).json()).Completed >= bytes;
};

test("after kill -9 during a pull earlier models are whole, and the next pull resumes", async () => {
  const name = publish(front, "m", [big]);
  dribble();
  void hearth.post("/api/pull", { model: name, insecure: true }).then(
    (response) => response.text().catch(() => ""), // cut off by the kill
    () => "",
  );
  expect(await eventually(() => isKept(3 * MB), 60_000)).toBe(true);
  await hearth.stop();
  hearth = await startHearth({ home });
  expect(await names()).toEqual(["hearth:latest"]);
  const answer = await hearth.post("/api/generate", { model: "hearth", prompt: "Hello", stream: false });
  expect(answer.status).toBe(200);
  expect(await resumesAt(name)).toBeGreaterThanOrEqual(3 * MB);
  expect(await names()).toContain(`${name}:latest`);
  expect((await readdir(blobs())).filter((file) => !/^sha256-[0-9a-f]{64}$/.test(file))).toEqual([]);
}, 120_000);

test("a client that disconnects during a pull stops the download, and the next pull resumes", async () => {
  const name = publish(front, "m", [big]);
  dribble();
  const client = new AbortController();
  const response = await hearth.post("/api/pull", { model: name, insecure: true }, client.signal);
  for await (const { completed = 0 } of ndjson(response)) if (completed >= 3 * MB) break;
  client.abort();
  expect(await eventually(() => isKept(3 * MB), 60_000)).toBe(true); // written when it stops
  expect(await resumesAt(name)).toBeGreaterThanOrEqual(3 * MB);
}, 120_000);

test("the first start makes a key that only its owner can read", async () => {
  expect((await stat(join(home, ".hearth", "id_ed25519"))).mode & 0o777).toBe(0o600);
  expect(await Bun.file(join(home, ".hearth", "id_ed25519.pub")).text()).toStartWith("ssh-ed25519 AAAA");
});

test("a file that is not a key in the key's place is reported in the log, and the server serves", async () => {
  await hearth.stop();
  await rm(join(home, ".hearth", "id_ed25519"));
  await Bun.write(join(home, ".hearth", "id_ed25519"), "not a key");
  hearth = await startHearth({ home });
  const warns = (): boolean =>
    hearth.log().join("\n").includes("no signing key: private registries will refuse requests");
  expect(await eventually(warns)).toBe(true);
  expect(await names()).toEqual(["hearth:latest"]);
}, 60_000);

test.skipIf(!DOCKER_REGISTRY)(
  "the ollama client pushes to docker-registry and pulls what it pushed",
  async () => {
    const registry = await startDockerRegistry(join(home, "registry"));
    try {
      const client = new Ollama({ host: hearth.url });
      const model = `${registry.host}/someone/hearth:v1`;
      await client.copy({ source: "hearth", destination: model });
      const pushed = await Array.fromAsync(await client.push({ model, insecure: true, stream: true }));
      expect(pushed[0]?.status).toBe("retrieving manifest");
      expect(pushed.at(-1)?.status).toBe("success");
      const before = (await client.list()).models.find(({ name }) => name === model)!.digest;

      await hearth.stop();
      await rm(join(home, ".hearth"), { recursive: true });
      hearth = await startHearth({ home });
      const other = new Ollama({ host: hearth.url });
      expect(await other.pull({ model, insecure: true, stream: false })).toMatchObject({ status: "success" });
      const again = await Array.fromAsync(await other.pull({ model, insecure: true, stream: true }));
      expect(again.map(({ status }) => status.replace(/ sha256:.*/, ""))).toEqual([
        "pulling manifest",
        ...Array.from({ length: again.length - 5 }, () => "downloading"),
        "verifying sha256 digest",
        "writing manifest",
        "removing any unused layers",
        "success",
      ]);
      expect((await other.list()).models.find(({ name }) => name === model)!.digest).toBe(before);
      const { response } = await other.generate({
        model,
        prompt: "Hello",
        options: { num_predict: 4, temperature: 0 },
      });
      expect(response).not.toBe("");
    } finally {
      await registry.stop();
    }
  },
  120_000,
);
