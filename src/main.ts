#!/usr/bin/env bun
/**
 * The program. A runner, of which every model that is loaded starts one, has no use for the command line: imports are
 * made when they are wanted.
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
} else {
  const { runCommandLine } = await import("./cli/command-line.ts");
  await runCommandLine(process.env);
}
