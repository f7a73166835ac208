/** What every route may use. `main.ts` builds the parts; `app.ts` adds `answer`. */
import type { Config } from "../config.ts";
import type { Logger } from "../base/log.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Library } from "../store/library.ts";
import type { Registry } from "../store/registry/registry.ts";
import type { Store } from "../store/store.ts";
import type { Answer } from "./http/exchange.ts";
import type { Inspect } from "./inspect.ts";
import type { Metrics } from "./metrics/metrics.ts";

/** What routes use of the gateway. */
export type ServedGateway = Pick<
  Gateway,
  "ingress" | "admin" | "observe" | "status" | "check" | "isDraining" | "backInMs"
>;

export interface AppDeps {
  readonly runtime: Runtime;
  readonly store: Store;
  /** Changes what `store` reads. */
  readonly library: Library;
  /** Brings models from elsewhere into `library`, and takes them there. */
  readonly registry: Registry;
  readonly config: Pick<Config, "home" | "host" | "origins" | "apiKeys">;
  readonly log: Logger;
  readonly version: string;
  readonly now: () => Date;
  /** Takes webhooks, where it is configured. */
  readonly gateway?: ServedGateway | undefined;
}

export interface RouteDeps extends AppDeps {
  readonly answer: Answer;
  readonly inspect: Inspect;
  readonly metrics: Metrics;
}
