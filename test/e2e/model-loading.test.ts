/** Models loaded and unloaded as in llama-server's router. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startHearth, type Hearth } from "./hearth.ts";

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());

async function statuses(path: string): Promise<unknown> {
  const { data } = (await (await fetch(`${hearth.url}${path}`)).json()) as Record<string, any>;
  return Object.fromEntries(data.map(({ id, status }: { id: string; status: object }) => [id, status]));
}

async function ask(path: string, body: object): Promise<unknown[]> {
  const response = await hearth.post(path, body);
  return [response.status, await response.json()];
}

test("a load is done when it is answered, counts for all names of the weights, and can be taken back", async () => {
  const [loaded, unloaded] = [{ value: "loaded" }, { value: "unloaded" }];
  const refused = (code: number, message: string, type = "invalid_request_error") => [
    code,
    { error: { code, message, type } },
  ];
  const model = "hearth";
  await hearth.post("/api/copy", { source: model, destination: "other" });
  expect(await statuses("/models")).toEqual({ "hearth:latest": unloaded, "other:latest": unloaded });
  expect(await ask("/models/unload", { model })).toEqual(refused(400, "model is not running"));

  expect(await ask("/models/load", { model })).toEqual([200, { success: true }]);
  for (const path of ["/models", "/v1/models"]) {
    expect(await statuses(path)).toEqual({ "hearth:latest": loaded, "other:latest": loaded });
  }
  expect(await ask("/models/load", { model: "other" })).toEqual(refused(400, "model is already running"));

  expect(await ask("/models/unload", { model: "other" })).toEqual([200, { success: true }]);
  expect(await statuses("/models")).toEqual({ "hearth:latest": unloaded, "other:latest": unloaded });
  for (const path of ["/models/load", "/models/unload"]) {
    const missing = refused(404, "model 'nothing' not found", "not_found_error");
    expect(await ask(path, { model: "nothing" })).toEqual(missing);
    expect(await ask(path, {})).toEqual(refused(400, "model is required"));
  }
});
