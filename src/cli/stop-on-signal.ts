/** Stops a server on a signal: the parts it waits for, in their order, within time limits. */
import { isatty } from "node:tty";
import type { Logger } from "../base/index.ts";
import type { Config } from "../base/config/index.ts";
import type { Gateway } from "../gateway/index.ts";
import type { Library, Registry } from "../library/index.ts";
import type { SpareRunner } from "../runtime/index.ts";
import type { Runtime } from "../runtime/portable.ts";
import type { Lifecycle, RunningServer } from "../server/index.ts";

/** Additional time for ended streams to send their last line. */
const LAST_WORDS_MS = 1000;

/** Additional time for the last spans and metrics to reach a collector. */
const LAST_EXPORT_MS = 3000;

/** Time of the grace that the gateway keeps for messages under way and its last writes. */
const GATEWAY_LAST_MS = 3000;

/** Additional time for tool servers to end: some ignore the end of their input, and even SIGTERM. */
const TOOLS_LAST_MS = 5000;

interface Stoppable {
  readonly servers: readonly Pick<RunningServer, "stop">[];
  readonly runtime: Runtime;
  readonly spare: SpareRunner | undefined;
  readonly library: Library;
  readonly registry: Registry;
  readonly gateway: Gateway | undefined;
  readonly config: Pick<Config, "shutdownGraceMs" | "drainDelayMs">;
  readonly lifecycle: Lifecycle;
  readonly mcp: { close(): Promise<void> } | undefined;
  readonly telemetry: readonly ({ close(): Promise<void> } | undefined)[];
  readonly log: Pick<Logger, "info">;
}

/**
 * The first signal stops gracefully, the second at once. Running answers may finish; clients can repeat longer ones.
 */
export function stopOnSignal(parts: Stoppable): void {
  const { servers, runtime, spare, library, registry, gateway, config, lifecycle, telemetry, mcp, log } = parts;
  const { shutdownGraceMs: graceMs, drainDelayMs } = config;
  let stopping = false;
  const stop = async (delayMs: number): Promise<void> => {
    if (stopping) process.exit(1);
    stopping = true;
    lifecycle.phase = "draining";
    if (delayMs > 0) await Bun.sleep(delayMs);
    const began = Date.now();
    spare?.close();
    registry.close();
    const created = library.close();
    // stopped before the models, which its turns need
    await gateway?.stop(Math.max(0, graceMs - GATEWAY_LAST_MS));
    const leftMs = Math.max(0, graceMs - (Date.now() - began));
    const stopped = servers.map((server) => server.stop(leftMs + LAST_WORDS_MS));
    await Promise.all([...stopped, runtime.close(leftMs)]);
    const tools = Promise.race([mcp?.close(), Bun.sleep(TOOLS_LAST_MS)]);
    const sent = Promise.all(telemetry.map((each) => each?.close()));
    await Promise.all([created, tools, Promise.race([sent, Bun.sleep(LAST_EXPORT_MS)])]);
    process.exit(0);
  };
  process.on("SIGTERM", () => stop(drainDelayMs));
  // Windows: Ctrl+Break, and a console that is closed
  const more = process.platform === "win32" ? (["SIGBREAK", "SIGHUP"] as const) : [];
  for (const signal of ["SIGINT", ...more] as const) process.on(signal, () => stop(0)); // the user waits
  if (process.platform === "win32") return;
  // SIGHUP: the terminal was closed. Without one, as a service or under `nohup`, others send it for new settings.
  const hasTerminal = [0, 1, 2].some((fd) => isatty(fd));
  process.on("SIGHUP", () => {
    if (hasTerminal) void stop(0);
    else log.info("SIGHUP has no effect: changed files are read without it, other settings need a restart");
  });
}
