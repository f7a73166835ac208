/** `GET /health`: the server's health, for supervisors and load balancers. */
import { statfs } from "node:fs/promises";
import type { GatewayStatus } from "../../gateway/index.ts";
import type { Reply } from "../http/exchange.ts";
import type { RouteDeps } from "./deps.ts";
import { gatewayStatus, problemsOf } from "./readiness.ts";
import { get } from "./route.ts";

/** With less free space uploads, downloads and caches fail. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;

const HEALTH = { api: "server", summary: "Whether this server can do its work" } as const;

export const healthRoutes = [get("/health", health, HEALTH), get("/v1/health", health, HEALTH)];

async function health(deps: RouteDeps): Promise<Reply> {
  const body = await examine(deps);
  return { kind: "json", body, ...(body.status === "ok" ? {} : { status: 503 }) };
}

interface Health {
  readonly status: "ok" | "failing";
  readonly version: string;
  /** One line per problem. */
  readonly problems: readonly string[];
  readonly disk: { readonly free: number | null };
  /** Absent: none is configured, or its database does not answer. */
  readonly gateway?: GatewayStatus;
  readonly models: {
    readonly loaded: number;
    readonly running: number;
    readonly waiting: number;
    /** Models whose runners hung in the last ten minutes and were ended; absent: none. */
    readonly hung?: readonly { readonly model: string; readonly at: string }[];
  };
}

async function examine(deps: RouteDeps): Promise<Health> {
  const { store, runtime, version } = deps;
  const [problems, gateway] = await Promise.all([problemsOf(deps), gatewayStatus(deps)]);
  const disk = await statfs(store.root).catch(() => undefined);
  const free = disk ? disk.bavail * disk.bsize : null;
  if (free !== null && free < FREE_BYTES_MIN) problems.push(`the disk of the model store has ${free} bytes left`);
  const { running, waiting, hung } = runtime.activity();
  const ended = hung.map(({ name, at }) => ({ model: name, at: new Date(at).toISOString() }));
  return {
    status: problems.length === 0 ? "ok" : "failing",
    version,
    problems,
    disk: { free },
    ...(gateway && { gateway }),
    models: {
      loaded: runtime.loaded().filter(({ isBeside }) => !isBeside).length,
      running,
      waiting,
      ...(ended.length > 0 && { hung: ended }),
    },
  };
}
