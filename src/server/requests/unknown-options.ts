/** Options of a request that Hearth does not support, because clients send options of other servers. */
import type { Logger } from "../../base/index.ts";

export function warnUnknown(
  log: Logger,
  { model, unknown }: { model: string | undefined; unknown: readonly string[] },
): void {
  if (unknown.length > 0) log.warn("ignored unknown options", { model, options: unknown.slice(0, 16) });
}
