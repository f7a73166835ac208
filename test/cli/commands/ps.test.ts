/** `hearth ps`: the share of a model on each processor. */
import { expect, test } from "bun:test";
import { Client } from "../../../src/cli/client/client.ts";
import { ps } from "../../../src/cli/commands/ps.ts";
import type { CliContext } from "../../../src/cli/terminal/context.ts";

/** The column's text for a model of this size in bytes. */
async function processorOf(size: number, size_vram: number): Promise<string | undefined> {
  const model = { name: "m", digest: "0".repeat(64), size, size_vram, context_length: 8, expires_at: "2100-01-01" };
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ models: [model] }) });
  let text = "";
  const client = new Client({ url: `http://127.0.0.1:${server.port}`, apiKey: undefined });
  const terminal = { write: (more: string) => void (text += more) };
  await ps({ client, terminal, nowMs: Date.now } as unknown as CliContext); // the used part
  return /\d+%(?:\/\d+%)? \S+/.exec(text)?.[0];
}

test("PROCESSOR: the shares of CPU and GPU in the bytes of a model, in whole percents", async () => {
  expect(await processorOf(1000, 0)).toBe("100% CPU");
  expect(await processorOf(1000, 1000)).toBe("100% GPU");
  expect(await processorOf(1000, 600)).toBe("40%/60% CPU/GPU");
  expect(await processorOf(3000, 1000)).toBe("67%/33% CPU/GPU");
});
