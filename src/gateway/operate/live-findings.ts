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

/** A shorter outage of a chat platform needs no operator. */
const OUTAGE_MS = 5 * 60_000;

/** One line per channel that takes no messages. */
function outagesOf({ outbox, now }: Pick<LiveFindingParts, "outbox" | "now">): string[] {
  return outbox.troubled.flatMap(({ channel, sinceMs, isRefused }) => {
    const lastedMs = Math.max(0, now() - sinceMs);
    const time = `for ${Math.floor(lastedMs / 60_000)} min: its replies wait, a day at most`;
    if (isRefused) return [`channel '${channel}' refuses our credentials, ${time}; replace its token`];
    return lastedMs < OUTAGE_MS ? [] : [`channel '${channel}' takes no messages, ${time}: see hearth channels check`];
  });
}

export interface LiveFindingParts {
  readonly source: { snapshot(): GatewaySnapshot; readonly problem?: string | undefined };
  readonly models: ModelSource;
  readonly observers: Observers;
  readonly outbox: Pick<Outbox, "troubled">;
  readonly now: () => number;
}

/** @returns a function that lists the current problems, one line each */
export function makeLiveFindings(parts: LiveFindingParts): () => Promise<string[]> {
  const { source, models, observers, now } = parts;
  const replies = new ReplyFailures(now);
  observers.add({ replyEnded: (...ended) => replies.replyEnded(...ended) });
  return async () => {
    const asked = auditModels(source.snapshot(), models).then((found) =>
      found.filter(({ severity }) => severity === "error").map(({ message }) => message),
    );
    const known = await inTime(asked, { ms: ANSWER_MS, late: () => [] }).catch(() => []);
    return [
      ...(source.problem === undefined ? [] : [REFUSED]),
      ...new Set(known),
      ...outagesOf(parts),
      ...replies.findings(),
    ];
  };
}
