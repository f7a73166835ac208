/** An ingress on a separate socket, for the tests of its rows. */
import { expect } from "bun:test";
import type { AgentAction, WakeAction } from "../../src/gateway/hooks/action.ts";
import { makeWorld, TOKEN, type World, type WorldOptions } from "../gateway/hooks/ingress/fixtures.ts";
import { operationOf, schemaProblems } from "./openapi.ts";
import { afterTest } from "../cleanups.ts";
import { makeHarness } from "../server/harness.ts";

export interface Api {
  readonly world: World;
  readonly url: string;
  readonly logs: Record<string, unknown>[];
  send(path: string, body?: unknown, init?: RequestInit): Promise<Response>;
  /** With the hook token. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

export async function startHooks(options: WorldOptions = {}, config = {}): Promise<Api> {
  let world!: World; // assigned before the harness returns
  const harness = await makeHarness(config, { hooks: (log) => (world = makeWorld({ log, ...options })).ingress });
  afterTest(async () => {
    await harness.close();
    await world.store.close();
  });
  const { url } = harness.listen();
  const send: Api["send"] = (path, body, init = {}) =>
    fetch(url + path, {
      method: "POST",
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...init,
    });
  return {
    world,
    url,
    get logs() {
      return harness.logs.filter(({ path }) => path !== "/openapi.json"); // `refusal` requested it
    },
    send,
    post: (path, body, headers) => send(path, body, { headers: { authorization: `Bearer ${TOKEN}`, ...headers } }),
  };
}

export const json = async (response: Pick<Response, "json">): Promise<any> => response.json();
export const wakes = async (api: Api): Promise<WakeAction[]> =>
  (await api.world.actions()).filter((action) => action.kind === "wake");
export const agents = async (api: Api): Promise<AgentAction[]> =>
  (await api.world.actions()).filter((action) => action.kind === "agent");

/** Status and code of a refusal, checked against the API description. */
export async function refusal(response: Response): Promise<[number, string]> {
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  const body = await json(response);
  const matched = { ...body }; // bun's toMatchObject writes its matchers into its argument
  expect(matched).toMatchObject({ ok: false, error: expect.any(String), code: expect.any(String) });
  expect(body.requestId).toBe(response.headers.get("x-request-id"));
  const described = await json(await fetch(new URL("/openapi.json", response.url)));
  const answer = operationOf(described, response)?.responses[response.status];
  expect([body.code, answer?.description.split(", ")]).toEqual([body.code, expect.arrayContaining([body.code])]);
  expect(schemaProblems(answer.content["application/json"].schema, body)).toBe("");
  const names = Object.keys(answer.headers).map((name) => name.toLowerCase());
  for (const name of ["allow", "retry-after", "www-authenticate", "ratelimit-limit"]) {
    if (response.headers.has(name)) expect(names).toContain(name);
  }
  return [response.status, body.code];
}
