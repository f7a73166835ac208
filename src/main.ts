#!/usr/bin/env bun
/** The program. A runner, of which every model that is loaded starts one, has no use for the command line. */
if (process.argv[2] === "runner") {
  const { startRunnerProcess } = await import("./runner/process.ts");
  startRunnerProcess({
    send: (message) => process.send?.(message),
    onMessage: (handle) => process.on("message", handle),
    onDisconnect: (handle) => process.on("disconnect", handle),
    exit: (code) => process.exit(code),
  });
} else {
  const { runCommandLine } = await import("./command-line.ts");
  await runCommandLine(process.env);
}
export {}; // its imports are all made when they are wanted
