/** `GET /health`: whether this server can do its work, for supervisors and load balancers. */
import { access, constants, statfs } from "node:fs/promises";
import { Elysia } from "elysia";
import type { GatewayStatus } from "../../gateway/status.ts";
import type { RouteDeps } from "../deps.ts";
import { describe } from "../schema/describe.ts";

/** Less than this and uploads, downloads and caches fail. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;

export const healthRoutes = (deps: RouteDeps) =>
  new Elysia().get(
    "/health",
    ({ request }) =>
      deps.answer(request, async () => {
        const body = await examine(deps);
        return { kind: "json", body, ...(body.status === "ok" ? {} : { status: 503 }) };
      }),
    { detail: describe({ api: "server", summary: "Whether this server can do its work", reply: "json" }) },
  );

interface Health {
  readonly status: "ok" | "failing";
  readonly version: string;
  /** What is wrong. */
  readonly problems: readonly string[];
  readonly disk: { readonly free: number | null };
  /** Absent: none is configured. */
  readonly gateway?: GatewayStatus;
  readonly models: { readonly loaded: number; readonly running: number; readonly waiting: number };
}

async function examine({ store, runtime, version, gateway }: RouteDeps): Promise<Health> {
  const problems: string[] = [];
  await access(store.root, constants.R_OK).catch((error: NodeJS.ErrnoException) =>
    problems.push(`the model store cannot be read (${error.code})`),
  );
  const disk = await statfs(store.root).catch(() => undefined);
  const free = disk ? disk.bavail * disk.bsize : null;
  if (free !== null && free < FREE_BYTES_MIN) problems.push(`the disk of the model store has ${free} bytes left`);
  if (gateway?.isDraining()) problems.push("the server is shutting down");
  else await gateway?.check().catch(() => problems.push("the gateway's database cannot be written"));
  const { running, waiting } = runtime.activity();
  return {
    status: problems.length === 0 ? "ok" : "failing",
    version,
    problems,
    disk: { free },
    ...(gateway && !gateway.isDraining() ? { gateway: await gateway.status() } : {}),
    models: { loaded: runtime.loaded().length, running, waiting },
  };
}
