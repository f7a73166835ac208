/** An ingress on a socket of its own, for the tests of its rows. */
import { afterEach, expect } from "bun:test";
import type { AgentAction, WakeAction } from "../../src/hooks/action.ts";
import { makeWorld, TOKEN, type World, type WorldOptions } from "../hooks/ingress/fixtures.ts";
import { makeHarness } from "../server/harness.ts";

export interface Api {
  readonly world: World;
  readonly url: string;
  readonly logs: Record<string, unknown>[];
  send(path: string, body?: unknown, init?: RequestInit): Promise<Response>;
  /** With the hook token. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

const closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0)) await close();
});

export async function startHooks(options: WorldOptions = {}, config = {}): Promise<Api> {
  let world!: World; // made by the harness, before it returns
  const harness = await makeHarness(config, { hooks: (log) => (world = makeWorld({ log, ...options })).ingress });
  closes.push(harness.close);
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
    logs: harness.logs,
    send,
    post: (path, body, headers) => send(path, body, { headers: { authorization: `Bearer ${TOKEN}`, ...headers } }),
  };
}

export const json = async (response: Pick<Response, "json">): Promise<any> => response.json();
export const wakes = (api: Api): WakeAction[] => api.world.actions().filter((action) => action.kind === "wake");
export const agents = (api: Api): AgentAction[] => api.world.actions().filter((action) => action.kind === "agent");

/** Status and code of a refusal, whose body must have the one shape. */
export async function refusal(response: Response): Promise<[number, string]> {
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  const body = await json(response);
  expect(body).toMatchObject({ ok: false, error: expect.any(String), code: expect.any(String) });
  expect(body.requestId).toBe(response.headers.get("x-request-id"));
  return [response.status, body.code];
}
