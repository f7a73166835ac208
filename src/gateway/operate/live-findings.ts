/** Problems for an operator to fix while the gateway runs, as shown by `GET /health`: no paths, no secrets. */
import { inTime } from "../../base/index.ts";
import type { ModelSource } from "../agent/models.ts";
import { auditModels } from "./audit-models.ts";
import type { Outbox } from "../channels/outbox/outbox.ts";
import type { Observers } from "./observers.ts";
import { ReplyFailures } from "./reply-failures.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

/** Time limit for listing the models. */
const ANSWER_MS = 1000;

const REFUSED =
  "the current configuration file is invalid, and the last valid one is in force: see the log, or hearth hooks audit";

const refusal = (channel: string, lastedMs: number): string =>
  `channel '${channel}' refuses our credentials, for ${Math.floor(Math.max(0, lastedMs) / 60_000)} min: ` +
  "its replies wait, a day at most; replace its token";

export interface LiveFindingParts {
  readonly source: { snapshot(): GatewaySnapshot; readonly problem?: string | undefined };
  readonly models: ModelSource;
  readonly observers: Observers;
  readonly outbox: Pick<Outbox, "refusals">;
  readonly now: () => number;
}

/** @returns a function that lists the current problems, one line each */
export function makeLiveFindings(parts: LiveFindingParts): () => Promise<string[]> {
  const { source, models, observers, outbox, now } = parts;
  const replies = new ReplyFailures(now);
  observers.add({ replyEnded: (...ended) => replies.replyEnded(...ended) });
  return async () => {
    const asked = auditModels(source.snapshot(), models).then((found) =>
      found.filter(({ severity }) => severity === "error").map(({ message }) => message),
    );
    const known = await inTime(asked, { ms: ANSWER_MS, late: () => [] }).catch(() => []);
    const refused = [...outbox.refusals].map(([channel, { sinceMs }]) => refusal(channel, now() - sinceMs));
    return [...(source.problem === undefined ? [] : [REFUSED]), ...new Set(known), ...refused, ...replies.findings()];
  };
}
