/** llama.cpp's own programs, built for this CPU, each run in a process of its own. */
import { join } from "node:path";

/** Tokens per second. */
export interface Rates {
  readonly prompt: number;
  readonly decode: number;
}
export interface LlamaPrograms {
  /** A prompt and tokens behind it, each by itself: medians of `rounds`. */
  bench(file: string, sizes: { prompt: number; tokens: number; rounds: number }): Promise<Rates>;
  /** Streams with prompts of their own, all of whose tokens are counted. */
  batched(file: string, sizes: { prompt: number; tokens: number; streams: number }): Promise<Rates>;
  /** A server that embeds texts; `embed` takes them all in one call and returns their tokens. */
  embedder(
    file: string,
    options: { tokens: number },
  ): Promise<{ embed(texts: readonly string[]): Promise<number>; stop(): void }>;
}

const START_TIMEOUT_MS = 30_000;
const PARALLEL = 4;

/** @param folder holds the programs; their libraries are looked for there too */
export function llamaPrograms(folder: string, threads: number): LlamaPrograms {
  const start = (name: string, given: readonly string[]): Bun.Subprocess<"ignore", "pipe", "pipe"> => {
    const env = {
      ...process.env,
      LD_LIBRARY_PATH: [folder, process.env["LD_LIBRARY_PATH"]].filter(Boolean).join(":"),
    };
    const command = [join(folder, name), ...given, "-t", String(threads)];
    return Bun.spawn(command, { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  };
  const run = (name: string, given: readonly string[]): Promise<string> => outputOf(start(name, given), name);
  return {
    async bench(file, { prompt, tokens, rounds }) {
      const sizes = ["-p", prompt, "-n", tokens, "-r", rounds, "-o", "json"].map(String);
      const tests = JSON.parse(await run("llama-bench", ["-m", file, ...sizes])) as {
        n_gen: number;
        samples_ts: number[];
      }[];
      const rate = (isDecode: boolean): number =>
        median(tests.find(({ n_gen }) => n_gen > 0 === isDecode)?.samples_ts ?? []);
      return { prompt: rate(false), decode: rate(true) };
    },
    async batched(file, { prompt, tokens, streams }) {
      const room = streams * (prompt + tokens + 32);
      const sizes = ["-npp", prompt, "-ntg", tokens, "-npl", streams, "-c", room].map(String);
      const lines = await run("llama-batched-bench", ["-m", file, ...sizes, "--output-format", "jsonl"]);
      const line = lines.split("\n").find((each) => each.startsWith("{"));
      const { speed_pp, speed_tg } = JSON.parse(line ?? "{}") as { speed_pp: number; speed_tg: number };
      return { prompt: speed_pp, decode: speed_tg };
    },
    async embedder(file, { tokens }) {
      const url = `http://127.0.0.1:${freePort()}`;
      const room = String(PARALLEL * tokens);
      const sizes = ["-np", String(PARALLEL), "-c", room, "-b", room, "-ub", room, "--port", new URL(url).port];
      const server = start("llama-server", ["-m", file, "--embedding", "--host", "127.0.0.1", ...sizes]);
      const errors = server.stderr.text(); // read, so that the pipe does not fill up
      void server.stdout.text();
      const isUp = async (): Promise<boolean> => (await fetch(`${url}/health`).catch(() => undefined))?.ok ?? false;
      for (const deadline = Date.now() + START_TIMEOUT_MS; !(await isUp()); await Bun.sleep(50)) {
        if (server.exitCode !== null) throw new Error(`llama-server: ${(await errors).slice(-500)}`);
        if (Date.now() > deadline) throw new Error(`llama-server: not up within ${START_TIMEOUT_MS} ms`);
      }
      return {
        async embed(input) {
          const body = JSON.stringify({ input, model: "bench" });
          const headers = { "content-type": "application/json" };
          const reply = await fetch(`${url}/v1/embeddings`, { method: "POST", headers, body });
          if (!reply.ok) throw new Error(`llama-server: ${reply.status} ${await reply.text()}`);
          return ((await reply.json()) as { usage: { total_tokens: number } }).usage.total_tokens;
        },
        stop: () => server.kill(),
      };
    },
  };
}

/** What a process printed; throws where it failed. */
export async function outputOf(child: Bun.Subprocess<"ignore", "pipe", "pipe">, name: string): Promise<string> {
  const [out, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${name}: ended with ${code}: ${errors.slice(-500)}`);
  return out;
}

export const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN;

function freePort(): number {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  probe.stop(true);
  return probe.port;
}
