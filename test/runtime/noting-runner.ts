/** A real runner, which records the kind of every message in the file that is its argument, `>` before its own. */
import { appendFileSync } from "node:fs";
import type { ToRunner } from "../../src/engine/runner/messages.ts";
import { startRunnerProcess } from "../../src/engine/runner/process.ts";
import { fromWire, toWire } from "../../src/base/wire.ts";

const path = process.argv[2];
if (path === undefined) throw new Error("expected the name of a file");
const note = (kind: string): void => appendFileSync(path, `${kind}\n`);

startRunnerProcess({
  send: (message) => {
    note(`> ${message.kind}`);
    process.send?.(toWire(message));
  },
  onMessage: (handle) =>
    process.on("message", (received: ToRunner) => {
      const message = fromWire(received);
      note(message.kind);
      handle(message);
    }),
  onDisconnect: (handle) => process.on("disconnect", handle),
  exit: (code) => process.exit(code),
});
