import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startFront, type Front } from "../library/registry/front.ts";
import { noise, publish } from "../library/registry/place.ts";
import { linesOf, makeHarness, type Harness } from "./harness.ts";

let front: Front;
let harness: Harness;
beforeEach(async () => {
  front = startFront();
  harness = await makeHarness();
});
afterEach(async () => {
  await harness.close();
  await front.stop();
});

const pull = (body: object) => harness.post("/api/pull", body);
const push = (body: object) => harness.post("/api/push", body);
const statuses = async (response: Response) =>
  (await linesOf(response)).map(({ status, error }) => status ?? { error });

describe("POST /api/pull", () => {
  test.each(["model", "name"])("%s: a pulled model can be used, and the answer is NDJSON", async (field) => {
    const response = await pull({ [field]: publish(front, "new", [noise(1000, 1)]), insecure: true });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const all = await statuses(response);
    expect(all[0]).toBe("pulling manifest");
    expect(all.slice(-4)).toEqual([
      "verifying sha256 digest",
      "writing manifest",
      "removing any unused layers",
      "success",
    ]);
    const { models } = (await (await harness.call("GET", "/api/tags")).json()) as { models: { name: string }[] };
    expect(models.map(({ name }) => name)).toContain(`${front.host}/library/new:latest`);
  });

  test("stream false: one object", async () => {
    const response = await pull({ model: publish(front, "new", [noise(1000, 1)]), insecure: true, stream: false });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: "success" });
  });

  test.each([{}, { model: "" }, { model: "a:b:c/" }, { model: "../x" }])("%j: 400 invalid model name", async (body) => {
    const response = await pull(body);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: "invalid model name" });
  });

  test("a name with http and without insecure: 400", async () => {
    const response = await pull({ model: `http://${front.host}/library/m` });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: "insecure protocol http" });
    expect(front.seen).toEqual([]);
  });

  test("a model that the registry lacks: an error in the stream, or 500 without streaming", async () => {
    const model = `${front.host}/library/absent`;
    const error = "pull model manifest: file does not exist";
    expect(await statuses(await pull({ model, insecure: true }))).toEqual(["pulling manifest", { error }]);
    const response = await pull({ model, insecure: true, stream: false });
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ error });
  });

  test.each([
    ["model", 7, "a string", "7"],
    ["insecure", "yes", "true or false", '"yes"'],
    ["stream", 1, "true or false", "1"],
  ])("%s of the wrong type: 400", async (field, value, wanted, got) => {
    const response = await pull({ [field]: value });
    expect(response.status).toBe(400);
    const error = `${field}: expected ${wanted}, got ${got}`;
    expect(await response.json()).toEqual({ error });
  });
});

describe("POST /api/push", () => {
  const copy = async () => {
    const destination = `${front.host}/someone/m:tag`;
    await harness.post("/api/copy", { source: "m", destination });
    return destination;
  };

  test.each(["model", "name"])("%s: the registry has the pushed model", async (field) => {
    const all = await statuses(await push({ [field]: await copy(), insecure: true }));
    expect(all.filter((status, i) => status !== all[i - 1])).toEqual([
      "retrieving manifest",
      "starting upload",
      "pushing manifest",
      "success",
    ]);
    expect([...front.manifests.keys()]).toEqual(["someone/m:tag"]);
  });

  test("stream false: one object", async () => {
    const response = await push({ model: await copy(), insecure: true, stream: false });
    expect([response.status, await response.json()]).toEqual([200, { status: "success" }]);
  });

  test.each([
    [{}, "model is required"],
    [{ model: "" }, "model is required"],
    [{ model: "../x" }, "invalid model name"],
  ])("%j: 400 %s", async (body, error) => {
    const response = await push(body);
    expect([response.status, await response.json()]).toEqual([400, { error }]);
  });

  test("a missing model: an error in the stream, or 404 without streaming", async () => {
    const model = `${front.host}/someone/absent`;
    const error = `model '${model}:latest' not found`;
    expect(await statuses(await push({ model, insecure: true }))).toEqual([
      "retrieving manifest",
      "couldn't retrieve manifest",
      { error },
    ]);
    const response = await push({ model, insecure: true, stream: false });
    expect([response.status, await response.json()]).toEqual([404, { error }]);
    expect(front.seen).toEqual([]);
  });
});
