#!/usr/bin/env bun
/**
 * The program's entry. A runner, started for every loaded model, does not need the command line: imports are made on
 * demand.
 */
import type { ToRunner } from "./engine/index.ts";

if (process.argv[2] === "runner") {
  const { startRunnerProcess } = await import("./engine/runner/process.ts");
  const { fromWire, toWire } = await import("./base/system.ts");
  startRunnerProcess({
    send: (message) => process.send?.(toWire(message)),
    onMessage: (handle) => process.on("message", (received) => handle(fromWire(received as ToRunner))),
    onDisconnect: (handle) => process.on("disconnect", handle),
    exit: (code) => process.exit(code),
  });
} else if (process.argv[2] === "selftest-child") {
  const { runSelftest } = await import("./engine/backends/index.ts");
  await runSelftest(process.argv[3] ?? "");
} else {
  const { runCommandLine } = await import("./cli/command-line.ts");
  await runCommandLine(process.env);
}
