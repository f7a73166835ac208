/**
 * A gateway whose turns call tools with effects, until it is killed. Arguments: its folder, and `work`, which accepts
 * more requests, or `drain`, which ends what is open and exits.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { makeGateway } from "../../../src/gateway/operate/gateway.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";
import { readMcpServers } from "../../../src/runtime/mcp/index.ts";
import type { Runtime, ToolCall } from "../../../src/runtime/requests/runtime.ts";
import { scriptedRuntime } from "../agent/scripted-runtime.ts";
import { silent } from "../hooks/ingress/fixtures.ts";

const [folder = "", task, server = ""] = process.argv.slice(2);
const servers = {
  fx: {
    command: process.execPath,
    args: [server, join(folder, "effects"), "30"],
    harmless: ["once", "keyed", "again"],
    idempotencyKeys: { keyed: "key" },
    connectTimeout: "30s",
  },
};
const config = join(folder, "hearth.json5");
writeFileSync(config, JSON.stringify({ mcp: { servers } }));
const root = {
  agents: { defaults: { model: "m", maxConcurrent: 8, heartbeat: { every: 0, target: "none" } } },
  mcp: { servers },
  hooks: { enabled: true, token: "hook-token-of-24-characters", queue: { maxAttempts: 100 } },
};
const snapshot = makeSnapshot({ root, files: [], where: () => "", hasVariable: () => false } as never, {
  folder,
  apiKeys: [],
});
const call = (tool: string, n: string): ToolCall => ({
  id: `${tool}-${n}`,
  function: { name: `fx__${tool}`, arguments: { n } },
});
const runtime = scriptedRuntime(({ messages }) => {
  const [, n = ""] = /number (\S+);/.exec(messages.findLast(({ role }) => role === "user")?.content ?? "") ?? [];
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  if (results.length === 0) return { calls: [call("once", n)] };
  if (results.length === 1) return { calls: [call("keyed", n), call("again", n)] };
  return { text: `results: ${results.map((text) => /did \w+|interrupted/.exec(text)?.[0] ?? text).join(", ")};` };
});
const gateway = await makeGateway({
  source: { snapshot: () => snapshot, onChange: () => {} },
  home: folder,
  runtime: runtime as unknown as Runtime, // the part that turns use
  modelNames: async () => ["m:latest"],
  clock: systemClock,
  log: silent,
  fetch,
  servers: readMcpServers({ env: {}, flags: { config }, home: folder }),
});
await gateway.start();
process.stdout.write("ready\n");

async function accept(n: string): Promise<void> {
  const text = `number ${n};`;
  await gateway.deliveries.accept({
    requestId: n,
    path: "agent",
    auth: { kind: "token", id: "test" },
    bodySha256: n,
    bodyBytes: 1,
    headers: {},
    now: Date.now(),
    respond: (runIds) => ({ status: 202, body: { ok: true, runIds } }) as never,
    actions: [
      {
        kind: "agent",
        message: [{ from: "external", text }],
        name: "test",
        wakeMode: "next-heartbeat",
        deliver: false,
        channel: "last",
        tools: ["fx/*"],
        isWrapped: true,
      },
    ],
  });
}

if (task === "drain") {
  for (;;) {
    const { queued, running } = await gateway.status();
    if (queued + running === 0) break;
    await Bun.sleep(50);
  }
  await gateway.stop(0);
  process.exit(0);
}
for (let i = 0; i < 4; i++) await accept(`${process.pid}-${i}`);
process.stdout.write("accepted\n");
