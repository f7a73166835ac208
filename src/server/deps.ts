/** What every route may use. `main.ts` builds the parts; `app.ts` adds `answer`. */
import type { Config } from "../config.ts";
import type { Logger } from "../base/log.ts";
import type { Admin } from "../hooks/admin/admin.ts";
import type { Ingress } from "../hooks/ingress/ingress.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Library } from "../store/library.ts";
import type { Registry } from "../store/registry/registry.ts";
import type { Store } from "../store/store.ts";
import type { Answer } from "./exchange.ts";
import type { Inspect } from "./inspect.ts";
import type { Metrics } from "./metrics.ts";

export interface AppDeps {
  readonly runtime: Runtime;
  readonly store: Store;
  /** Changes what `store` reads. */
  readonly library: Library;
  /** Brings models from elsewhere into `library`, and takes them there. */
  readonly registry: Registry;
  readonly config: Pick<Config, "host" | "origins" | "apiKeys">;
  readonly log: Logger;
  readonly version: string;
  readonly now: () => Date;
  /** Takes the webhooks, where the gateway is configured. */
  readonly hooks?: Ingress | undefined;
  /** What operators do with them. */
  readonly admin?: Admin | undefined;
}

export interface RouteDeps extends AppDeps {
  readonly answer: Answer;
  readonly inspect: Inspect;
  readonly metrics: Metrics;
}
