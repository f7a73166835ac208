/**
 * `GET /livez`, `/readyz` and `/startupz`: probes for a supervisor. Alive: this process answers; faults that a restart
 * cannot fix do not count. Ready: requests are welcome. Started: the work of an earlier process is recovered. None of
 * them writes.
 */
import { Elysia } from "elysia";
import type { RouteDeps } from "./deps.ts";
import type { Reply } from "../http/exchange.ts";
import { problemsOf, STARTING } from "./readiness.ts";
import { describe } from "../schema/describe.ts";

export const probeRoutes = (deps: RouteDeps) =>
  new Elysia()
    .get("/livez", ({ request }) => deps.answer(request, () => verdict([])), {
      detail: describe({ api: "server", summary: "Whether this process answers", reply: "json" }),
    })
    .get("/readyz", ({ request }) => deps.answer(request, async () => verdict(await problemsOf(deps))), {
      detail: describe({
        api: "server",
        summary: "Whether requests are welcome: not while it starts or drains, or its database or store is away",
        reply: "json",
      }),
    })
    .get("/startupz", ({ request }) => deps.answer(request, () => verdict(untilStarted(deps))), {
      detail: describe({ api: "server", summary: "Whether it has taken up its work", reply: "json" }),
    });

const untilStarted = ({ lifecycle }: RouteDeps): string[] => (lifecycle?.phase === "starting" ? [STARTING] : []);

const verdict = (problems: readonly string[]): Reply => ({
  kind: "json",
  body: { status: problems.length === 0 ? "ok" : "failing", problems },
  ...(problems.length === 0 ? {} : { status: 503 }),
});
