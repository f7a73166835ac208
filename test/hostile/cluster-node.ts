/**
 * A node of a cluster as a process, which may be killed or stopped at any moment: a whole gateway on a separate
 * socket, with a model that answers by a script. It logs the effects outside of the database: turns that begin and end.
 *
 *   bun cluster-node.ts SETTINGS LOG [ADDRESS]
 */
import { appendFileSync, existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../src/base/clock.ts";
import { makeLogger } from "../../src/base/log.ts";
import { makeGateway } from "../../src/gateway/operate/gateway.ts";
import { makeSnapshot } from "../../src/gateway/operate/snapshot.ts";
import type { Runtime } from "../../src/runtime/requests/runtime.ts";
import { scriptedRuntime } from "../gateway/agent/scripted-runtime.ts";
import { makeHarness } from "../server/harness.ts";

const [settings, logPath, address = "127.0.0.1"] = process.argv.slice(2) as [string, string, string?];
const home = mkdtempSync(join(tmpdir(), "hearth-node-"));
const note = (line: object): void =>
  appendFileSync(
    logPath,
    `${JSON.stringify({ at: performance.timeOrigin + performance.now(), pid: process.pid, ...line })}\n`,
  );

const scripted = scriptedRuntime(({ messages }) => ({ text: `answer to ${keyIn(messages.at(-1)?.content)}` }));
/** A request contains its key and the duration of its turn, or the file whose existence ends it. */
const keyIn = (text = ""): string => /key=([\w-]+)/.exec(text)?.[1] ?? "nothing";
const runtime: typeof scripted = {
  ...scripted,
  async *chat(request) {
    const asked = request.messages.at(-1)?.content;
    const key = keyIn(asked);
    note({ begins: key });
    try {
      await sleep(Number(/takes=(\d+)/.exec(asked ?? "")?.[1] ?? 0), undefined, { signal: request.signal });
      const file = /until=([\w/.-]+)/.exec(asked ?? "")?.[1];
      while (file !== undefined && !existsSync(file)) await sleep(10, undefined, { signal: request.signal });
      yield* scripted.chat(request);
    } finally {
      note({ ends: key });
    }
  },
};
const root = JSON.parse(settings) as Record<string, unknown>;
const snapshot = makeSnapshot({ root, files: [], where: () => "", hasVariable: () => false } as never, {
  folder: home,
  apiKeys: [],
});
const log = makeLogger({ write: (line) => note({ log: JSON.parse(line) }), now: Date.now, debug: false });
const gateway = await makeGateway({
  source: { snapshot: () => snapshot, onChange: () => {} },
  home,
  runtime: runtime as unknown as Runtime, // the part that turns use
  modelNames: async () => ["m:latest"],
  clock: systemClock,
  log,
  fetch,
});
const harness = await makeHarness({ host: { hostname: address, port: 0 } }, { gateway });
const { url } = harness.listen();
await gateway.start();
process.stdout.write(`${JSON.stringify({ url, now: Date.now() })}\n`);
process.stdin.on("end", () => process.exit()); // its parent is gone
process.stdin.resume();
