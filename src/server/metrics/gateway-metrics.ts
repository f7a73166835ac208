/** Metrics of the gateway: requests by outcome, the queue, runs and replies. */
import { inTime } from "../../base/index.ts";
import { Counter, Gauge, Histogram, type Registry } from "./prom-client.ts";
import { configurations, type Gateway, type GatewayStatus } from "../../gateway/index.ts";
import { watchMail } from "./mail-metrics.ts";

/** Time limit for the database's counts: Prometheus gives up after 10 s. */
const ANSWER_MS = 3000;
const RUN_SECONDS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

export interface WatchedGateway extends Pick<Gateway, "observe" | "status" | "nodes" | "isDraining"> {
  readonly mail: Pick<Gateway["mail"], "status">;
}

/**
 * Counts one request.
 * @param route label, of a bounded set
 * @param notes of its reply
 */
export type CountHook = (route: string, notes: Readonly<Record<string, unknown>>) => void;

export function makeGatewayMetrics(gateway: WatchedGateway, registers: Registry[]): CountHook {
  const requests = new Counter({
    name: "hearth_hook_requests_total",
    help: "Requests to the webhook ingress: accepted, replayed, answered otherwise, or the code of their refusal",
    labelNames: ["route", "outcome"],
    registers,
  });
  watchRuns(gateway, registers);
  watchSends(gateway, registers);
  watchQueue(gateway, registers);
  watchNodes(gateway, registers);
  watchMail(gateway, registers);
  return (route, { code, replayed, delivery }) => {
    const accepted = replayed ? "replayed" : delivery === undefined ? "answered" : "accepted";
    requests.inc({ route, outcome: typeof code === "string" ? code : accepted }); // codes are a closed set
  };
}

function watchRuns(gateway: WatchedGateway, registers: Registry[]): void {
  const runs = new Counter({
    name: "hearth_hook_runs_total",
    help: "Runs that ended, by kind (wake, agent) and final state",
    labelNames: ["kind", "state"],
    registers,
  });
  const seconds = new Histogram({
    name: "hearth_hook_run_seconds",
    help: "Time from the beginning of an agent run's last attempt to its end",
    labelNames: ["state"],
    buckets: RUN_SECONDS,
    registers,
  });
  const waits = new Histogram({
    name: "hearth_hook_run_wait_seconds",
    help: "Time from the acceptance of an agent run to the beginning of its last attempt",
    buckets: RUN_SECONDS,
    registers,
  });
  gateway.observe({
    runEnded({ kind, state, createdAt, startedAt, finishedAt }) {
      runs.inc({ kind, state });
      if (startedAt === null || finishedAt === null) return;
      seconds.observe({ state }, (finishedAt - startedAt) / 1000);
      waits.observe((startedAt - createdAt) / 1000);
    },
  });
}

/** Channels are the configured ones, and `last` if no target was found. */
function watchSends(gateway: WatchedGateway, registers: Registry[]): void {
  const replies = new Counter({
    name: "hearth_hook_replies_total",
    help: "Answers of runs by how their delivery to a chat ended; skipped: only an acknowledgement",
    labelNames: ["channel", "outcome"],
    registers,
  });
  const messages = new Counter({
    name: "hearth_channel_sends_total",
    help: "Attempts to send a message to a chat: sent, failed for good, to be retried, unknown, or refused with our token",
    labelNames: ["channel", "outcome"],
    registers,
  });
  const callbacks = new Counter({
    name: "hearth_hook_callbacks_total",
    help: "Tries to tell a sender the outcome of its run",
    labelNames: ["outcome"],
    registers,
  });
  gateway.observe({
    replyEnded: (outcome, channel) => replies.inc({ channel, outcome }),
    messageTried: (channel, outcome) => messages.inc({ channel, outcome }),
    callbackTried: (outcome) => callbacks.inc({ outcome }),
  });
}

/** Absent while the database does not answer; other metrics are still reported. */
function watchQueue(gateway: WatchedGateway, registers: Registry[]): void {
  const status = shared(() => whileOpen(gateway, () => gateway.status()));
  const gauge = (name: string, help: string, read: (status: GatewayStatus) => number): void =>
    void new Gauge({
      name,
      help,
      registers,
      async collect() {
        const found = await status();
        if (found) this.set(read(found));
        else this.remove();
      },
    });
  gauge("hearth_hook_runs_queued", "Accepted runs that wait", ({ queued }) => queued);
  gauge("hearth_hook_runs_running", "Runs that a model works on", ({ running }) => running);
  gauge("hearth_hook_queue_oldest_seconds", "Age of the oldest that waits", ({ oldestMs }) => oldestMs / 1000);
  gauge("hearth_hook_replies_pending", "Replies that are not delivered yet", ({ replies }) => replies);
  gauge("hearth_hook_callbacks_pending", "Callbacks that are not delivered yet", ({ callbacks }) => callbacks);
  gauge("hearth_gateway_findings", "Problems to mend, which /health lists", ({ findings = [] }) => findings.length);
  gauge("hearth_outbox_messages_pending", "Messages to chats that have not left yet", ({ messages }) => messages);
}

function watchNodes(gateway: WatchedGateway, registers: Registry[]): void {
  void new Gauge({
    name: "hearth_config_digest_nodes",
    help: "Servers that share the gateway's database, by their configuration: more than one digest is a mistake",
    labelNames: ["digest"],
    registers,
    async collect() {
      const nodes = await whileOpen(gateway, () => gateway.nodes());
      this.reset();
      for (const [digest, n] of configurations(nodes ?? [])) this.set({ digest }, n);
    },
  });
}

/** Undefined if the database is closed, down or too slow. */
async function whileOpen<T>(gateway: WatchedGateway, read: () => Promise<T>): Promise<T | undefined> {
  if (gateway.isDraining()) return undefined;
  return inTime(read(), { ms: ANSWER_MS, late: () => undefined }).catch(() => undefined);
}

/** Concurrent callers share one read. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let underway: Promise<T> | undefined;
  return () => (underway ??= read().finally(() => (underway = undefined)));
}
