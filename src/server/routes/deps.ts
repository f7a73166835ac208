/** What every route may use. `main.ts` builds the parts; `app.ts` adds `answer`. */
import type { Config } from "../../base/config/index.ts";
import type { Logger } from "../../base/index.ts";
import type { Tracer } from "../../base/tracing.ts";
import type { Gateway } from "../../gateway/index.ts";
import type { Runtime } from "../../runtime/portable.ts";
import type { Library, Registry } from "../../library/index.ts";
import type { Store } from "../../library/portable.ts";
import type { FindAsset } from "../../page/assets.ts";
import type { Answer } from "../http/exchange.ts";
import type { Inspect } from "../models/inspect.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { RecentRequests } from "../http/recent.ts";

/** What routes use of the gateway. */
export interface ServedGateway extends Pick<
  Gateway,
  "ingress" | "admin" | "observe" | "status" | "nodes" | "check" | "isDraining" | "backInMs"
> {
  readonly mail: Pick<Gateway["mail"], "status">;
}

/** What a server runs on, and how it is set. */
export interface Machine {
  readonly backend: string;
  /** For people. */
  readonly device: string;
  readonly cores: number;
  readonly memory: { readonly total: number; readonly available: number };
  /** Settings by name; none of them is a secret, or a path. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** Models that are being loaded: how far each is, from 0 to 1. */
  readonly loading: readonly { readonly fraction: number }[];
}

export interface AppDeps {
  readonly runtime: Runtime;
  readonly store: Store;
  /** Changes what `store` reads. */
  readonly library: Library;
  /** Brings models from elsewhere into `library`, and takes them there. */
  readonly registry: Registry;
  readonly config: Pick<Config, "home" | "host" | "hosts" | "origins" | "apiKeys" | "metricsDialect"> &
    Partial<Pick<Config, "gpuMemory">>;
  readonly log: Logger;
  readonly version: string;
  readonly now: () => Date;
  /** What it runs on; absent: nobody says. */
  readonly machine?: () => Promise<Machine>;
  /** Where it is between its start and its end; absent: it serves. */
  readonly lifecycle?: Readonly<Lifecycle>;
  /** Absent: nothing is traced. */
  readonly tracer?: Tracer | undefined;
  /** Takes webhooks, where it is configured. */
  readonly gateway?: ServedGateway | undefined;
}

export interface RouteDeps extends AppDeps {
  readonly answer: Answer;
  readonly inspect: Inspect;
  readonly metrics: Metrics;
  readonly recent: RecentRequests;
  /** What the page is made of. */
  readonly findAsset: FindAsset;
}
