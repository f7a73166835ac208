/** What keeps this server from doing its work. */
import { access, constants } from "node:fs/promises";
import type { GatewayStatus } from "../gateway/index.ts";
import type { RouteDeps } from "./deps.ts";

/** A folder or database that has said nothing for so long is away. */
const ANSWER_MS = 2000;

/** Until it has taken up what an earlier process left. */
export const STARTING = "the server is starting";

type Examined = Pick<RouteDeps, "store" | "gateway" | "life">;

/** A line for people for each problem, without paths; none: requests are welcome. Writes nothing where all is well. */
export async function problemsOf(deps: Examined): Promise<string[]> {
  const { store, gateway } = deps;
  const reading = within(ANSWER_MS, access(store.root, constants.R_OK)).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => `the model store cannot be read (${error.code ?? "no answer"})`,
  );
  if (isEnding(deps)) return listed([await reading, "the server is shutting down"]);
  const checking = within(ANSWER_MS, gateway?.check()).then(
    () => undefined,
    () => "the gateway's database cannot be written",
  );
  const beginning = deps.life?.phase === "starting" ? STARTING : undefined;
  return listed([beginning, ...(await Promise.all([reading, checking]))]);
}

const listed = (problems: readonly (string | undefined)[]): string[] => problems.filter((each) => each !== undefined);

const isEnding = ({ gateway, life }: Examined): boolean => life?.phase === "draining" || gateway?.isDraining() === true;

/** What the gateway is at; undefined where it ends, or its database does not say. */
export async function gatewayStatus({ gateway }: Examined): Promise<GatewayStatus | undefined> {
  if (!gateway || gateway.isDraining()) return undefined;
  return await within(ANSWER_MS, gateway.status()).catch(() => undefined);
}

/** What `work` resolves to; rejects where that takes longer. */
async function within<T>(ms: number, work: Promise<T> | undefined): Promise<T | undefined> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("no answer")), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
