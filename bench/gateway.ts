/**
 * How the real server takes webhooks in over HTTP: wakes per second and their latency, each on the disk before it is
 * answered, with and without a model that generates meanwhile.
 *
 *   bun bench/gateway.ts [--seconds 5] [--senders 1,16,64] [--rounds 3]
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startHearth, type Hearth } from "../test/e2e/hearth.ts";

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    senders: { type: "string", default: "1,16,64" },
    rounds: { type: "string", default: "3" },
  },
});
const TOKEN = "a-hook-token-of-32-characters-xx";
const SETTINGS = {
  hooks: { enabled: true, token: TOKEN, queue: { max: 1_000_000 } },
  session: { maxEvents: 100_000 },
  agents: { defaults: { heartbeat: { every: 0, target: "none" } } },
};

interface Sample {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly refused: number;
}

for (const senders of flags.senders.split(",").map(Number)) await measure(senders);

async function measure(senders: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "hearth-bench-gateway-"));
  mkdirSync(join(home, ".hearth"));
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify(SETTINGS), { mode: 0o600 });
  const hearth = await startHearth({ home });
  const idle: Sample[] = [];
  const busy: Sample[] = [];
  try {
    for (let round = 0; round < Number(flags.rounds); round++) {
      idle.push(await load(hearth, senders));
      const stop = new AbortController();
      const generating = generate(hearth, stop.signal);
      busy.push(await load(hearth, senders));
      stop.abort();
      await generating;
    }
  } finally {
    await hearth.stop();
    rmSync(home, { recursive: true, force: true });
  }
  print(`${senders} senders`, idle);
  print(`${senders} senders while a model generates`, busy);
}

function print(name: string, samples: readonly Sample[]): void {
  const median = (key: keyof Sample): number =>
    samples.map((each) => each[key]).toSorted((a, b) => a - b)[samples.length >> 1]!;
  const [rate, p50, p99] = [median("perSecond").toFixed(0), median("p50").toFixed(1), median("p99").toFixed(1)];
  console.log(`${name}: ${rate} accepted/s, p50 ${p50} ms, p99 ${p99} ms, ${median("refused")} refused`);
}

/** One stream after the other. */
async function generate(server: Hearth, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const body = { model: "hearth", prompt: "Tell me a story about a fox.", options: { num_predict: 400 } };
    const response = await server.post("/api/generate", body, signal).catch(() => undefined);
    await response?.text().catch(() => {}); // cut off
  }
}

async function load(server: Hearth, senders: number): Promise<Sample> {
  const latencies: number[] = [];
  let refused = 0;
  const began = performance.now();
  const until = began + Number(flags.seconds) * 1000;
  const sender = async (): Promise<void> => {
    while (performance.now() < until) {
      const at = performance.now();
      const response = await fetch(`${server.url}/hooks/wake`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}` },
        body: JSON.stringify({ text: "x".repeat(300), mode: "next-heartbeat" }),
      });
      await response.text();
      if (response.ok) latencies.push(performance.now() - at);
      else refused++;
    }
  };
  await Promise.all(Array.from({ length: senders }, sender));
  const perSecond = (latencies.length / (performance.now() - began)) * 1000;
  const sorted = latencies.toSorted((a, b) => a - b);
  return { perSecond, p50: sorted[sorted.length >> 1]!, p99: sorted[Math.floor(sorted.length * 0.99)]!, refused };
}
