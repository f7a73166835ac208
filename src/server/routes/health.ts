/**
 * `GET /health`: the server's health, for supervisors and load balancers. `GET /livez`, `/readyz` and `/startupz`:
 * probes. Alive: this process answers; faults that a restart cannot fix do not count. Ready: requests are welcome.
 * Started: the work of an earlier process is recovered. None of them writes.
 */
import { statfs, access, constants } from "node:fs/promises";
import { inTime } from "../../base/index.ts";
import type { GatewayStatus } from "../../gateway/index.ts";
import type { Reply } from "../http/exchange.ts";
import type { RouteDeps } from "./deps.ts";
import { get } from "./route.ts";

/** With less free space uploads, downloads and caches fail. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;

const HEALTH = { api: "server", summary: "Whether this server can do its work" } as const;

export const healthRoutes = [
  get("/health", health, HEALTH),
  get("/v1/health", health, HEALTH),
  get("/livez", () => verdict([]), { api: "server", summary: "Whether this process answers" }),
  get("/readyz", async (deps) => verdict(await problemsOf(deps)), {
    api: "server",
    summary: "Whether requests are welcome: not while it starts or drains, or its database or store is away",
  }),
  get("/startupz", (deps) => verdict(untilStarted(deps)), {
    api: "server",
    summary: "Whether it has taken up its work",
  }),
];

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

/** Time limit for a folder or database to answer. */
const ANSWER_MS = 2000;

/** The problem until the work of an earlier process is recovered. */
const STARTING = "the server is starting";

type Examined = Pick<RouteDeps, "store" | "gateway" | "lifecycle">;

/** One displayed line per problem, without paths; empty: ready. Writes nothing if all is well. */
async function problemsOf(deps: Examined): Promise<string[]> {
  const { store, gateway } = deps;
  const reading = inTime(access(store.root, constants.R_OK), { ms: ANSWER_MS, late }).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => `the model store cannot be read (${error.code ?? "no answer"})`,
  );
  if (isEnding(deps)) return listed([await reading, "the server is shutting down"]);
  const checking = inTime(gateway?.check() ?? Promise.resolve(), { ms: ANSWER_MS, late }).then(
    () => undefined,
    () => "the gateway's database cannot be written",
  );
  const beginning = deps.lifecycle?.phase === "starting" ? STARTING : undefined;
  return listed([beginning, ...(await Promise.all([reading, checking]))]);
}

const listed = (problems: readonly (string | undefined)[]): string[] => problems.filter((each) => each !== undefined);

const isEnding = ({ gateway, lifecycle }: Examined): boolean =>
  lifecycle?.phase === "draining" || gateway?.isDraining() === true;

/** The gateway's status; undefined if it is stopping, or its database does not answer. */
async function gatewayStatus({ gateway }: Examined): Promise<GatewayStatus | undefined> {
  if (!gateway || gateway.isDraining()) return undefined;
  return inTime(gateway.status(), { ms: ANSWER_MS, late }).catch(() => undefined);
}

function late(): never {
  throw new Error("no answer");
}

const untilStarted = ({ lifecycle }: RouteDeps): string[] => (lifecycle?.phase === "starting" ? [STARTING] : []);

const verdict = (problems: readonly string[]): Reply => ({
  kind: "json",
  body: { status: problems.length === 0 ? "ok" : "failing", problems },
  ...(problems.length === 0 ? {} : { status: 503 }),
});
