/**
 * `GET /livez`, `/readyz` and `/startupz`: probes for a supervisor. Alive: this process answers; faults that a restart
 * cannot fix do not count. Ready: requests are welcome. Started: the work of an earlier process is recovered. None of
 * them writes.
 */
import type { RouteDeps } from "./deps.ts";
import type { Reply } from "../http/exchange.ts";
import { problemsOf, STARTING } from "./readiness.ts";
import { get } from "./route.ts";

export const probeRoutes = [
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

const untilStarted = ({ lifecycle }: RouteDeps): string[] => (lifecycle?.phase === "starting" ? [STARTING] : []);

const verdict = (problems: readonly string[]): Reply => ({
  kind: "json",
  body: { status: problems.length === 0 ? "ok" : "failing", problems },
  ...(problems.length === 0 ? {} : { status: 503 }),
});
