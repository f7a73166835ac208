/** Problems for an operator to fix while the gateway runs, as shown by `GET /health`: no paths, no secrets. */
import { inTime } from "../../base/index.ts";
import type { ModelSource } from "../agent/models.ts";
import { auditModels } from "./audit-models.ts";
import type { Observers } from "./observers.ts";
import { ReplyFailures } from "./reply-failures.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

/** Time limit for listing the models. */
const ANSWER_MS = 1000;

const REFUSED =
  "the current configuration file is invalid, and the last valid one is in force: see the log, or hearth hooks audit";

export interface LiveFindingParts {
  readonly source: { snapshot(): GatewaySnapshot; readonly problem?: string | undefined };
  readonly models: ModelSource;
  readonly observers: Observers;
  readonly now: () => number;
}

/** @returns a function that lists the current problems, one line each */
export function makeLiveFindings({ source, models, observers, now }: LiveFindingParts): () => Promise<string[]> {
  const replies = new ReplyFailures(now);
  observers.add({ replyEnded: (...ended) => replies.replyEnded(...ended) });
  return async () => {
    const asked = auditModels(source.snapshot(), models).then((found) =>
      found.filter(({ severity }) => severity === "error").map(({ message }) => message),
    );
    const known = await inTime(asked, { ms: ANSWER_MS, late: () => [] }).catch(() => []);
    return [...(source.problem === undefined ? [] : [REFUSED]), ...new Set(known), ...replies.findings()];
  };
}
