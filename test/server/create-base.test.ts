/** `POST /api/create` with a missing base: it is pulled first. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { openStore } from "../../src/library/store/store.ts";
import { startFront, type Front } from "../library/registry/front.ts";
import { noise } from "../library/registry/place.ts";
import { encodeGguf } from "../engine/formats/gguf/fixture.ts";
import { f32 } from "../../src/engine/formats/quant/f32.ts";
import { CONFIG_TYPE, mediaType } from "../../src/library/store/manifest.ts";
import { linesOf, makeHarness, type Harness } from "./harness.ts";

let front: Front;
let harness: Harness;
let base: string;
beforeEach(async () => {
  front = startFront();
  harness = await makeHarness();
  const weights = encodeGguf({
    metadata: { "general.architecture": "llama" },
    tensors: [{ name: "t", shape: [1024], quant: f32, data: noise(4096, 5) }],
  });
  const config = front.put(new TextEncoder().encode('{"model_format":"gguf","model_family":"llama"}'));
  const system = front.put(new TextEncoder().encode("You are far."));
  const manifest = {
    schemaVersion: 2,
    config: { mediaType: CONFIG_TYPE, ...config },
    layers: [
      { mediaType: mediaType("model"), ...front.put(new Uint8Array(weights)) },
      { mediaType: mediaType("system"), ...system },
    ],
  };
  front.manifests.set("library/far:latest", new TextEncoder().encode(JSON.stringify(manifest)));
  base = `${front.host}/library/far`;
});
afterEach(async () => {
  await harness.close();
  await front.stop();
});

const create = (body: object) => harness.post("/api/create", { model: "near", insecure: true, ...body });

test.each(["from", "modelfile"])(
  "%s: creating from a remote base reports the steps of the pull, and then those of the create",
  async (shape) => {
    const body = shape === "from" ? { from: base } : { modelfile: `FROM ${base}\nPARAMETER top_k 3` };
    const statuses = (await linesOf(await create(body))).map(({ status }) => String(status));
    expect(statuses[0]).toBe("pulling manifest");
    expect(statuses.filter((status) => status.startsWith("downloading sha256:")).length).toBeGreaterThan(2);
    expect(statuses.filter((status) => status === "success").length).toBe(1);
    expect(statuses.slice(-2)).toEqual(["writing manifest", "success"]);
    const store = await openStore(harness.root);
    expect([(await store.load("near")).system, (await store.load(base)).system]).toEqual([
      "You are far.",
      "You are far.",
    ]);
  },
);

test("a local base is not pulled, and a base that the registry lacks is an error", async () => {
  expect((await create({ from: "m", stream: false })).status).toBe(200);
  expect(front.seen).toEqual([]);
  const response = await create({ from: `${front.host}/library/none`, stream: false });
  expect([response.status, await response.json()]).toEqual([
    500,
    { error: "pull model manifest: file does not exist" },
  ]);
});

test("a client that disconnects aborts the pull of the base, and the next create succeeds", async () => {
  const gone = new AbortController();
  front.behaviour.interfere = ({ path }) =>
    path.includes("/blobs/") ? (gone.abort(), new Promise<Response>(() => {})) : undefined;
  const { url } = harness.listen();
  const body = JSON.stringify({ model: "near", from: base, insecure: true, stream: false });
  await expect(fetch(`${url}/api/create`, { method: "POST", body, signal: gone.signal })).rejects.toThrow();
  front.behaviour.interfere = () => undefined;
  expect((await create({ from: base, stream: false })).status).toBe(200);
});
