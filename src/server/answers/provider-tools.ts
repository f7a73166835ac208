/** Tools that run on a provider's servers. A web search is dropped with a warning; all others are refused. */
import type { Logger } from "../../base/index.ts";

const DISPENSABLE = /^web_search/;
const SHOWN = 16;

/** True if a model may answer without a tool of this type. */
export const isDispensable = (type: unknown): type is string => typeof type === "string" && DISPENSABLE.test(type);

/** Warns of tool types that were dropped. */
export function warnDroppedTools(log: Logger, { model, left }: { model: string; left: readonly string[] }): void {
  if (left.length > 0)
    log.warn("left out tools that run on a provider's servers", { model, types: left.slice(0, SHOWN) });
}
