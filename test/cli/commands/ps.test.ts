/** `hearth ps`: the share of a model on each processor. */
import { expect, test } from "bun:test";
import { Client } from "../../../src/cli/client/client.ts";
import { ps } from "../../../src/cli/commands/ps.ts";
import type { CliContext } from "../../../src/cli/terminal/context.ts";

/** The output for a model of this size in bytes. */
async function shown(size: number, size_vram: number, more: object = {}): Promise<{ text: string; notes: string[] }> {
  const own = { name: "m", digest: "0".repeat(64), size, size_vram, context_length: 8, expires_at: "2100-01-01" };
  const model = { ...own, ...more };
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ models: [model] }) });
  let text = "";
  const client = new Client({ url: `http://127.0.0.1:${server.port}`, apiKey: undefined });
  const notes: string[] = [];
  const terminal = { write: (part: string) => void (text += part), note: (line: string) => void notes.push(line) };
  await ps({ client, terminal, nowMs: Date.now } as unknown as CliContext); // the used part
  return { text, notes };
}

/** The text of the column PROCESSOR. */
async function processorOf(size: number, vram: number): Promise<string | undefined> {
  return /\d+%(?:\/\d+%)? \S+/.exec((await shown(size, vram)).text)?.[0];
}

test("PROCESSOR has the CPU's and GPU's shares of a model's bytes, in whole percents", async () => {
  expect(await processorOf(1000, 0)).toBe("100% CPU");
  expect(await processorOf(1000, 1000)).toBe("100% GPU");
  expect(await processorOf(1000, 600)).toBe("40%/60% CPU/GPU");
  expect(await processorOf(3000, 1000)).toBe("67%/33% CPU/GPU");
});

test("a model on several devices is listed with the layers of each", async () => {
  const placement = [
    { device: "GPU 1", layers: 32 },
    { device: "GPU 2", layers: 1 },
    { device: "CPU", layers: 0, experts: 5 },
  ];
  const { notes } = await shown(1000, 600, { placement });
  expect(notes).toEqual(["m: 32 layers on GPU 1, 1 layer on GPU 2, the experts of 5 layers on CPU"]);
  expect((await shown(1000, 600)).notes).toEqual([]);
});

test("a model that does not fit in memory is listed with its bytes in memory and the hit rate of its experts", async () => {
  const streamed = { memory: 400, hits: 0, misses: 0, bytes_read: 0 };
  const fresh = await shown(1000, 0, { streamed });
  expect(fresh.notes).toEqual(["m: does not fit in memory: 400 B of 1 KB stay, the others are read from the disk"]);
  const used = await shown(1000, 0, { streamed: { ...streamed, hits: 3, misses: 1 } });
  expect(used.notes[0]).toEndWith("the others are read from the disk; so far 75% of experts were in memory");
});
