/**
 * `/runs/<id>` and `/runs/<id>/events`: a run's state, once or as a stream. Needs a token that could have sent the
 * run's request: the main hook token sees all runs, another only its own.
 */
import { retryAfter } from "../../../base/index.ts";
import type { RunOrigin } from "../queue/deliveries/queries.ts";
import type { RunNews } from "../queue/worker/watch.ts";
import type { RunBody } from "./answers.ts";
import type { Authenticator } from "./authenticator.ts";
import type { Auth, EndpointReply, IngressDeps } from "./ports.ts";
import { Refusal } from "./problems.ts";
import type { RateLimits } from "./rate-limits.ts";
import { jsonReply } from "./reply.ts";
import { MAIN_TOKEN } from "./tokens.ts";
import type { RequestContext } from "./request-context.ts";
import type { Wait, Waits } from "./waits.ts";

const BUSY_RETRY_MS = 5000;

export interface AskedRun {
  readonly id: string;
  readonly wantsEvents: boolean;
}

/** @param path relative to the ingress, without slashes at its ends */
export function parseRunPath(path: string): AskedRun | undefined {
  const [, id, events] = /^runs\/([\w-]{1,64})(\/events)?$/.exec(path) ?? [];
  return id === undefined ? undefined : { id, wantsEvents: events !== undefined };
}

export interface RunDeps extends IngressDeps {
  readonly authenticator: Authenticator;
  readonly waits: Waits;
  /** Same limits as `hooks.rateLimit`, but counted separately, so that polling cannot starve webhooks. */
  readonly questions: RateLimits;
}

/** Throws a `Refusal`. */
export async function answerRun(
  { authenticator, questions, runs, waits }: RunDeps,
  { id, wantsEvents }: AskedRun,
  { settings, client, note, addHeaders }: RequestContext,
): Promise<EndpointReply> {
  authenticator.admitSomewhere(settings.hooks, client); // no database access for strangers
  const origin = await runs.origin(id);
  const pass = authenticator.admit(settings.hooks, origin ? { ...client, path: origin.path } : client);
  note({ auth: pass.auth.id });
  addHeaders(questions.take([["hooks", settings.hooks.rateLimit]]));
  const status = origin && mayRead(pass.auth, origin) ? await runs.status(id) : undefined;
  if (!status) throw new Refusal("not_found", { reason: "no such run, or another token's" });
  const headers = pass.headers ?? {};
  const body: RunBody = { ok: true, run: status };
  if (!wantsEvents) return jsonReply({ status: 200, body }, { headers });
  if (client.method === "HEAD") return { status: 200, headers, body: undefined, notes: {} };
  if (waits.isFull) throw new Refusal("too_busy", { headers: retryAfter(BUSY_RETRY_MS) });
  const news = (gone: AbortSignal): AsyncGenerator<RunNews> =>
    held(waits.begin(gone), (signal) => runs.watch(id, signal));
  return { status: 200, headers, body: undefined, notes: {}, news };
}

const mayRead = (auth: Auth, { authKind, authId }: RunOrigin): boolean =>
  auth.id === MAIN_TOKEN || (auth.kind === authKind && auth.id === authId);

async function* held(
  wait: Wait | undefined,
  watch: (signal: AbortSignal) => AsyncGenerator<RunNews>,
): AsyncGenerator<RunNews> {
  if (!wait) return;
  try {
    yield* watch(wait.signal);
  } finally {
    wait.end();
  }
}
