/** A whole gateway behind a separate socket: its database, worker and channels are real, its runtime has a script. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { makeGateway, type Gateway } from "../../../src/gateway/operate/gateway.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";
import { type McpServers, readMcpServers } from "../../../src/runtime/mcp/index.ts";
import type { Runtime } from "../../../src/runtime/requests/runtime.ts";
import { scriptedRuntime, type Script, type ScriptedRuntime } from "../agent/scripted-runtime.ts";
import { databaseOf } from "../../stores.ts";
import { silent } from "../hooks/ingress/fixtures.ts";
import { afterTest } from "../../cleanups.ts";
import { makeHarness } from "../../server/harness.ts";

export const HOOK_TOKEN = "hook-token-of-24-characters";
export const GATEWAY_TOKEN = "gateway-token-of-24-characters";

export interface GatewayWorld {
  readonly url: string;
  /** Folder of its database. */
  readonly home: string;
  readonly gateway: Gateway;
  readonly runtime: ScriptedRuntime;
  readonly logs: Record<string, unknown>[];
  hook(path: string, body?: unknown, init?: { headers?: Record<string, string>; method?: string }): Promise<Response>;
  admin(path: string, init?: { body?: unknown; method?: string; token?: string }): Promise<Response>;
}

export interface GatewayWorldOptions {
  readonly settings?: Record<string, any>;
  readonly script?: Script;
  /** Tool servers by name, as in `mcp.servers`. */
  readonly servers?: Record<string, object>;
  /** Folder of the database; absent: a new one. */
  readonly home?: string;
}

/** Heartbeats are off, and replies have no target. */
export async function startGateway(options: GatewayWorldOptions = {}): Promise<GatewayWorld> {
  const { settings = {}, script, servers } = options;
  const home = options.home ?? mkdtempSync(join(tmpdir(), "hearth-gateway-"));
  if (options.home === undefined) afterTest(() => rmSync(home, { recursive: true, force: true }));
  const root = {
    gateway: { token: GATEWAY_TOKEN },
    agents: { defaults: { model: "m", heartbeat: { every: 0, target: "none" } } },
    ...(await databaseOf(home)),
    ...(servers ? { mcp: { servers } } : {}),
    ...settings,
    hooks: { enabled: true, token: HOOK_TOKEN, ...settings["hooks"] },
  };
  const snapshot = makeSnapshot({ root, files: [], where: () => "", hasVariable: () => false } as never, {
    folder: home,
    apiKeys: [],
  });
  const runtime = scriptedRuntime(script ?? (() => ({ text: "Done it." })));
  const mcp = servers && toolServers(home, { serve: true, servers });
  const gateway = await makeGateway({
    source: { snapshot: () => snapshot, onChange: () => {} },
    home,
    runtime: runtime as unknown as Runtime, // the part that turns use
    modelNames: async () => ["m:latest"],
    clock: systemClock,
    log: silent,
    fetch,
    servers: mcp,
  });
  const harness = await makeHarness({}, { gateway, ...(mcp ? { mcp } : {}) });
  const { url } = harness.listen();
  await gateway.start();
  afterTest(async () => {
    await harness.close();
    await gateway.stop(0);
  });
  const send = (path: string, token: string, { body, method, headers }: Init): Promise<Response> =>
    fetch(url + path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return {
    url,
    home,
    gateway,
    runtime,
    logs: harness.logs,
    hook: (path, body, init = {}) => send(`/hooks/${path}`, HOOK_TOKEN, { ...init, body }),
    admin: (path, { token = GATEWAY_TOKEN, ...init } = {}) => send(`/hooks-admin/${path}`, token, init),
  };
}

function toolServers(home: string, mcp: object): McpServers {
  const config = join(home, "hearth.json5");
  writeFileSync(config, JSON.stringify({ mcp }));
  const found = readMcpServers({ env: {}, flags: { config }, home });
  afterTest(() => found.close());
  return found;
}

interface Init {
  readonly body?: unknown;
  readonly method?: string | undefined;
  readonly headers?: Record<string, string> | undefined;
}

export const json = async (response: Response): Promise<any> => response.json();
