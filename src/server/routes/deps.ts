/** Shared parts of the routes. `main.ts` builds them; `app.ts` adds `answer`. */
import type { Config } from "../../base/config/index.ts";
import type { Logger } from "../../base/index.ts";
import type { Tracer } from "../../base/tracing.ts";
import type { Gateway } from "../../gateway/index.ts";
import type { McpServers } from "../../runtime/mcp/index.ts";
import type { Runtime } from "../../runtime/portable.ts";
import type { Library, Registry } from "../../library/index.ts";
import type { Store } from "../../library/portable.ts";
import type { FindAsset } from "../../page/assets.ts";
import type { Answer } from "../http/exchange.ts";
import type { Inspect } from "../models/inspect.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { RecentRequests } from "../http/recent.ts";

/** The part of the gateway that routes use. */
export interface ServedGateway extends Pick<
  Gateway,
  "ingress" | "admin" | "observe" | "status" | "nodes" | "check" | "isDraining" | "backInMs"
> {
  readonly mail: Pick<Gateway["mail"], "status">;
}

/** The server's hardware and settings. */
export interface Machine {
  readonly backend: string;
  /** Its name in texts for users. */
  readonly device: string;
  readonly cores: number;
  readonly memory: { readonly total: number; readonly available: number };
  /** Settings by name; none of them is a secret or a path. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** Progress of each model being loaded, from 0 to 1. */
  readonly loading: readonly { readonly fraction: number }[];
}

export interface AppDeps {
  readonly runtime: Runtime;
  readonly store: Store;
  /** Writes to the store. */
  readonly library: Library;
  /** Pulls models into `library`, and pushes them. */
  readonly registry: Registry;
  readonly config: Pick<Config, "home" | "host" | "hosts" | "origins" | "apiKeys" | "metricsDialect" | "responses"> &
    Partial<Pick<Config, "gpuMemory">>;
  readonly log: Logger;
  readonly version: string;
  readonly now: () => Date;
  /** Facts about the machine; absent: unknown. */
  readonly machine?: () => Promise<Machine>;
  /** The server's phase; absent: it serves. */
  readonly lifecycle?: Readonly<Lifecycle>;
  /** Absent: tracing is off. */
  readonly tracer?: Tracer | undefined;
  /** The tool servers of the configuration, if any. */
  readonly mcp?: McpServers | undefined;
  /** Receives webhooks, if configured. */
  readonly gateway?: ServedGateway | undefined;
}

export interface RouteDeps extends AppDeps {
  readonly answer: Answer;
  /** Answers a request as if it came from a client. */
  readonly dispatch: (request: Request) => Promise<Response>;
  readonly inspect: Inspect;
  readonly metrics: Metrics;
  readonly recent: RecentRequests;
  /** The owner of a request's key; empty without keys. */
  readonly ownerOf: (request: Request) => string;
  /** Finds the files of the page. */
  readonly findAsset: FindAsset;
}
