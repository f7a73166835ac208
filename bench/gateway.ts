/**
 * The real server's intake of webhooks over HTTP: wakes per second and their latency, each stored on the disk before it
 * is answered, with and without a model that generates meanwhile.
 *
 *   bun bench/gateway.ts [--seconds 5] [--senders 1,16,64] [--rates 1000] [--rounds 3] [--idle]
 *                        [--warm-up 3] [--stores sqlite,postgres,postgres-2] [--before FOLDER]
 *
 * Before the first round each store receives wakes of 16 senders for `--warm-up` seconds times the number of its
 * servers: a new process compiles its code, and two of them on one database get half of the wakes each.
 *
 * Several stores take turns in each round, PostgreSQL as a cluster of the bench's own, on the disk of the temporary
 * folder; each line has the ratio to the first. `--before` is another source tree, which comes first. `postgres-2` is
 * two servers on one database, which get requests in turn. `--idle`: no model generates.
 *
 * Senders are closed loops: each sends again after its answer. A rate is an open loop: requests are sent at even times,
 * whether earlier ones were answered or not, and their latency counts from the planned time.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { childPids, startHearth, type Hearth } from "../test/e2e/hearth.ts";
import { startPostgres } from "../test/postgres-server.ts";

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    senders: { type: "string", default: "1,16,64" },
    rates: { type: "string", default: "1000" },
    rounds: { type: "string", default: "3" },
    "warm-up": { type: "string", default: "3" },
    stores: { type: "string", default: "sqlite" },
    before: { type: "string" },
    idle: { type: "boolean", default: false },
  },
});
const TOKEN = "a-hook-token-of-32-characters-xx";
const WARM_UP_SENDERS = 16;
/** Clock ticks per second in `/proc`. */
const TICKS = 100;
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
  /** Processor seconds of the servers and their database for 10,000 webhooks. */
  readonly processor: number;
}

interface Server extends Hearth {
  /** Number of servers on the database. */
  readonly nodes: number;
  /** Processor seconds of the servers' processes and of their database. */
  processorSeconds(): Promise<number>;
}

type Load = (server: Server) => Promise<Sample>;

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;
const numbers = (list: string): number[] => list.split(",").filter(Boolean).map(Number);
for (const senders of numbers(flags.senders))
  await measure(`${senders} senders`, (server) => closedLoop(server, senders));
for (const rate of numbers(flags.rates)) await measure(`${rate} a second`, (server) => openLoop(server, rate));

interface Subject {
  readonly name: string;
  /** Absent: this tree's. */
  readonly main?: string;
  readonly store: string;
}

function subjects(): Subject[] {
  const stores = flags.stores.split(",");
  const main = flags.before === undefined ? undefined : join(flags.before, "src/main.ts");
  const before = main === undefined ? [] : stores.map((store) => ({ name: `${store} before`, main, store }));
  return [...before, ...stores.map((store) => ({ name: store, store }))];
}

async function measure(name: string, load: Load): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const servers: { subject: Subject; hearth: Server; idle: Sample[]; busy: Sample[] }[] = [];
  for (const subject of subjects()) servers.push({ subject, hearth: await start(subject, stack), idle: [], busy: [] });
  for (const { hearth } of servers) await closedLoop(hearth, WARM_UP_SENDERS, Number(flags["warm-up"]) * hearth.nodes);
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const { hearth, idle, busy } of servers) {
      idle.push(await load(hearth));
      if (flags.idle) continue;
      const stop = new AbortController();
      const generating = generate(hearth, stop.signal);
      busy.push(await load(hearth));
      stop.abort();
      await generating;
    }
  }
  const [first] = servers;
  for (const { subject, idle, busy } of servers) {
    print(`${subject.name}: ${name}`, idle, first!.idle);
    if (!flags.idle) print(`${subject.name}: ${name} while a model generates`, busy, first!.busy);
  }
}

/** @param stack disposes of the servers after the measurement */
async function start({ store, main }: Subject, stack: AsyncDisposableStack): Promise<Server> {
  const [kind, nodes = "1"] = store.split("-");
  const postgres = kind === "postgres" ? await startPostgres() : undefined;
  if (postgres) stack.defer(() => postgres.remove());
  const settings = postgres ? { ...SETTINGS, database: { url: postgres.url } } : SETTINGS;
  const servers: Hearth[] = [];
  for (let i = 0; i < Number(nodes); i++) servers.push(await startServer({ settings, main }, stack));
  const pids = async (): Promise<number[]> => [
    ...servers.map(({ pid }) => pid),
    ...(postgres ? [postgres.pid(), ...(await childPids(postgres.pid()))] : []),
  ];
  let next = 0;
  return {
    ...servers[0]!,
    nodes: servers.length,
    get url() {
      return servers[next++ % servers.length]!.url;
    },
    processorSeconds: async () => sum(await Promise.all((await pids()).map(processorSeconds))),
  };
}

async function startServer(
  { settings, main }: { settings: object; main: string | undefined },
  stack: AsyncDisposableStack,
): Promise<Hearth> {
  const home = mkdtempSync(join(tmpdir(), "hearth-bench-gateway-"));
  stack.defer(() => rmSync(home, { recursive: true, force: true }));
  mkdirSync(join(home, ".hearth"));
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify(settings), { mode: 0o600 });
  const hearth = await startHearth({ home, ...(main === undefined ? {} : { main }) });
  stack.defer(() => hearth.stop());
  return hearth;
}

function print(name: string, samples: readonly Sample[], first: readonly Sample[]): void {
  const of = (all: readonly Sample[], key: keyof Sample): number => median(all.map((each) => each[key]));
  const [rate, p50, p99] = (["perSecond", "p50", "p99"] as const).map((key) => of(samples, key));
  const ratio = median(samples.map(({ perSecond }, round) => perSecond / first[round]!.perSecond)).toFixed(2);
  const rounds = samples.map(({ perSecond }) => perSecond.toFixed(0)).join(" ");
  console.log(
    `${name}: ${rate!.toFixed(0)} accepted/s (${rounds}), p50 ${p50!.toFixed(1)} ms, p99 ${p99!.toFixed(1)} ms, ` +
      `${of(samples, "refused")} refused, ${of(samples, "processor").toFixed(2)} s of processor per 10,000; ` +
      `${ratio} of the first`,
  );
}

/** One stream after another. */
async function generate(server: Hearth, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const body = { model: "hearth", prompt: "Tell me a story about a fox.", options: { num_predict: 400 } };
    const response = await server.post("/api/generate", body, signal).catch(() => undefined);
    await response?.text().catch(() => {}); // cut off
  }
}

/** Sends one wake. Resolves with true if it was accepted. */
async function wake({ url }: Hearth): Promise<boolean> {
  const response = await fetch(`${url}/hooks/wake`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ text: `${performance.now()} ${"x".repeat(300)}`, mode: "next-heartbeat" }),
  });
  await response.text();
  return response.ok;
}

async function closedLoop(server: Server, senders: number, seconds = Number(flags.seconds)): Promise<Sample> {
  const tally = new Tally(await server.processorSeconds());
  const until = performance.now() + seconds * 1000;
  const sender = async (): Promise<void> => {
    for (let at = performance.now(); at < until; at = performance.now()) tally.add(at, await wake(server));
  };
  await Promise.all(Array.from({ length: senders }, sender));
  return tally.sample(await server.processorSeconds());
}

async function openLoop(server: Server, rate: number): Promise<Sample> {
  const tally = new Tally(await server.processorSeconds());
  const began = performance.now();
  const sent: Promise<void>[] = [];
  const count = rate * Number(flags.seconds);
  while (sent.length < count) {
    const due = Math.min(count, Math.floor(((performance.now() - began) / 1000) * rate) + 1);
    while (sent.length < due) {
      const at = began + (sent.length / rate) * 1000;
      sent.push(wake(server).then((ok) => tally.add(at, ok)));
    }
    await Bun.sleep(1);
  }
  await Promise.all(sent);
  return tally.sample(await server.processorSeconds());
}

/** Processor time of a process, in seconds; 0 if it has ended. */
async function processorSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const [user = "0", system = "0"] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11);
  return (Number(user) + Number(system)) / TICKS;
}

class Tally {
  readonly #began = performance.now();
  readonly #latencies: number[] = [];
  readonly #processorBefore: number;
  #refused = 0;

  constructor(processorBefore: number) {
    this.#processorBefore = processorBefore;
  }

  add(sentAt: number, ok: boolean): void {
    if (ok) this.#latencies.push(performance.now() - sentAt);
    else this.#refused++;
  }

  sample(processorAfter: number): Sample {
    const sorted = this.#latencies.toSorted((a, b) => a - b);
    const perSecond = (sorted.length / (performance.now() - this.#began)) * 1000;
    return {
      perSecond,
      p50: sorted[sorted.length >> 1]!,
      p99: sorted[Math.floor(sorted.length * 0.99)]!,
      refused: this.#refused,
      processor: ((processorAfter - this.#processorBefore) / sorted.length) * 10_000,
    };
  }
}
