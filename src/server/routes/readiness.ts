/** Problems that keep this server from working. */
import { access, constants } from "node:fs/promises";
import { inTime } from "../../base/index.ts";
import type { GatewayStatus } from "../../gateway/index.ts";
import type { RouteDeps } from "./deps.ts";

/** Time limit for a folder or database to answer. */
const ANSWER_MS = 2000;

/** The problem until the work of an earlier process is recovered. */
export const STARTING = "the server is starting";

type Examined = Pick<RouteDeps, "store" | "gateway" | "lifecycle">;

/** One line for people per problem, without paths; empty: ready. Writes nothing if all is well. */
export async function problemsOf(deps: Examined): Promise<string[]> {
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
export async function gatewayStatus({ gateway }: Examined): Promise<GatewayStatus | undefined> {
  if (!gateway || gateway.isDraining()) return undefined;
  return inTime(gateway.status(), { ms: ANSWER_MS, late }).catch(() => undefined);
}

function late(): never {
  throw new Error("no answer");
}
