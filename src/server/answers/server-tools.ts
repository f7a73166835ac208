/** Tools that run on the servers of others. A model may do without a search of the web; all others are refused. */
import type { Logger } from "../../base/index.ts";

const DISPENSABLE = /^web_search/;
const SHOWN = 16;

/** Whether a model that is not given a tool of this type may still answer. */
export const isDispensable = (type: unknown): type is string => typeof type === "string" && DISPENSABLE.test(type);

/** Says which types of tools the model was not given. */
export function warnLeft(log: Logger, { model, left }: { model: string; left: readonly string[] }): void {
  if (left.length > 0) log.warn("tools that are not here were left out", { model, types: left.slice(0, SHOWN) });
}
