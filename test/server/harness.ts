/** An application over a fake runtime and a store of small models, called in process or over a socket. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../src/base/errors.ts";
import { type Logger, makeLogger } from "../../src/base/log.ts";
import type { Ingress } from "../../src/gateway/hooks/ingress/ingress.ts";
import { makeApp } from "../../src/server/app.ts";
import type { Config } from "../../src/base/config/config.ts";
import type { AppDeps, ServedGateway } from "../../src/server/routes/deps.ts";
import type { Lifecycle } from "../../src/server/routes/lifecycle.ts";
import { startServer } from "../../src/server/http/serve.ts";
import type { McpServers } from "../../src/runtime/mcp/index.ts";
import { makeLibrary } from "../../src/library/create/library.ts";
import { makeRegistry, type Registry, type Transfer } from "../../src/library/registry/registry.ts";
import { LIMITS } from "../../src/library/registry/retry.ts";
import { openStore, type Store } from "../../src/library/store/store.ts";
import { putModel, tempFolder } from "../library/fixture.ts";
import { makeFakeRuntime, type FakeRuntime } from "./fakes.ts";

export const NOW = new Date("2026-01-02T03:04:05.678Z");
export const CREATED_AT = "2026-01-02T03:04:05.678000000Z";

export interface Harness {
  readonly runtime: FakeRuntime;
  /** Folder of the store. */
  readonly root: string;
  /** The parsed log. */
  readonly logs: Record<string, unknown>[];
  readonly app: ReturnType<typeof makeApp>;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  post(path: string, body: unknown): Promise<Response>;
  /** Starts the application on a separate port. */
  listen(): { url: string; stop(graceMs: number): Promise<void> };
  close(): Promise<void>;
}

interface HarnessParts {
  readonly hooks?: (log: Logger) => Ingress;
  readonly gateway?: ServedGateway;
  readonly lifecycle?: Lifecycle;
  readonly mcp?: McpServers;
  /** Absent: the store has no source. */
  readonly isOffered?: Store["isOffered"];
}

/** The store has one model, `m:latest`. */
export async function makeHarness(
  config: Partial<AppDeps["config"] & Pick<Config, "importDirs" | "noPrune"> & { others: readonly string[] }> = {},
  { hooks, gateway, lifecycle, mcp, isOffered }: HarnessParts = {},
): Promise<Harness> {
  const folder = await tempFolder();
  const root = join(folder, "models");
  await putModel(root, "m", { texts: [["params", '{"stop":["<|end|>"],"temperature":0.7}']] });
  const runtime = makeFakeRuntime();
  const logs: Record<string, unknown>[] = [];
  const address = config.host ?? { hostname: "127.0.0.1", port: 0 };
  const log = makeLogger({ write: (line) => void logs.push(JSON.parse(line)), now: () => NOW.getTime(), debug: true });
  const library = makeLibrary({ root, importDirs: [], noPrune: false, log, ...config });
  const app = makeApp({
    runtime,
    store: { ...(await openStore(root)), ...(isOffered ? { isOffered } : {}) },
    library,
    registry: onThisMachine(makeRegistry({ library, home: folder, version: "1.2.3", limits: QUICK })),
    config: {
      home: folder,
      host: address,
      hosts: [],
      origins: [],
      apiKeys: [],
      metricsDialect: "hearth",
      responses: { count: 1000, bytes: 2 ** 24, ageMs: Infinity },
      ...config,
    },
    log,
    version: "1.2.3",
    now: () => NOW,
    ...(lifecycle ? { lifecycle } : {}),
    mcp,
    gateway: hooks ? bareGateway(hooks(log)) : gateway,
  });
  const stops: ((graceMs: number) => Promise<void>)[] = [];
  const call: Harness["call"] = async (method, path, body, headers = {}) => {
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    return app.handle(
      new Request(`http://localhost${path}`, { method, headers, ...(text === undefined ? {} : { body: text }) }),
    );
  };
  return {
    runtime,
    root,
    logs,
    app,
    call,
    post: (path, body) => call("POST", path, body),
    listen: () => {
      const server = startServer(app, { host: address });
      stops.push(server.stop);
      return server;
    },
    close: async () => {
      await Promise.all(stops.map((stop) => stop(0)));
      await rm(folder, { recursive: true });
    },
  };
}

/** Short waits for tests. */
const QUICK = { ...LIMITS, backoffMs: 1 };

/** Fails requests that would leave this machine: a name without a host belongs to a public registry. */
function onThisMachine(registry: Registry): Registry {
  const local = async function* ({ address, signal }: Transfer, run: Registry["pull"]): ReturnType<Registry["pull"]> {
    if (address.base.hostname !== "127.0.0.1") throw new AppError("registry", `${address.name.host}: not here`);
    yield* run({ address, signal });
  };
  return { ...registry, pull: (transfer) => local(transfer, registry.pull) };
}

/** A gateway with only the ingress. */
export function bareGateway(ingress: Ingress): ServedGateway {
  const status = { queued: 0, running: 0, oldestMs: 0, replies: 0, callbacks: 0, messages: 0 };
  const none = (): never => {
    throw new Error("no administration here");
  };
  const admin = {
    admit: none,
    list: none,
    find: none,
    replayAll: none,
    replay: none,
    cancel: none,
    nodes: none,
    mail: none,
    test: none,
    mappings: none,
    approvals: none,
    decide: none,
    findings: none,
    setPaused: none,
    isPaused: none,
  };
  const stopping = { isDraining: () => false, backInMs: () => 0 };
  return {
    ingress,
    admin,
    observe() {},
    status: async () => status,
    nodes: async () => [],
    mail: { status: undefined },
    check: async () => {},
    ...stopping,
  };
}

/** The objects of an NDJSON reply. */
export async function linesOf(response: Response): Promise<Record<string, unknown>[]> {
  const text = await response.text();
  if (!text.endsWith("\n")) throw new Error(`the last line is not ended: ${text}`);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** The data of each server-sent event: JSON, or its text. */
export async function framesOf(response: Response): Promise<any[]> {
  const text = await response.text();
  if (!text.endsWith("\n\n")) throw new Error(`the last frame is not ended: ${text}`);
  return text
    .trimEnd()
    .split("\n\n")
    .map((frame) => frame.replace(/^data: /, ""))
    .map((data) => (data.startsWith("{") ? JSON.parse(data) : data));
}
