/** The programs of llama.cpp and of ik_llama.cpp, its fork, built for this CPU, each run in a separate process. */
import { tmpdir } from "node:os";
import { resolve } from "node:path";

/** Tokens per second. */
export interface Rates {
  readonly prompt: number;
  readonly decode: number;
}
export interface LlamaPrograms {
  /** A prompt, and tokens after it, measured separately: medians of `rounds`. */
  bench(file: string, sizes: { prompt: number; tokens: number; rounds: number }): Promise<Rates>;
  /** Streams with different prompts; the tokens of all streams count. */
  batched(file: string, sizes: { prompt: number; tokens: number; streams: number }): Promise<Rates>;
  /** A server that embeds texts; `embed` sends them all in one call and returns the number of tokens. */
  embedder(
    file: string,
    options: { tokens: number },
  ): Promise<{ embed(texts: readonly string[]): Promise<number>; stop(): void }>;
  /**
   * A server with this many streams of `ctxLen` tokens each; `answer` resolves with the number of an answer's tokens.
   */
  server(
    file: string,
    options: { streams: number; ctxLen: number },
  ): Promise<{ answer(prompt: string, tokens: number): Promise<number>; stop(): void }>;
}

export type Project = "llama.cpp" | "ik_llama.cpp";

const START_TIMEOUT_MS = 30_000;
const PARALLEL = 4;
/** Columns of a row that `llama-batched-bench` prints if it does not support JSON. */
const [PROMPT_COLUMN, DECODE_COLUMN, COLUMNS] = [5, 7, 10];

export interface ProgramOptions {
  readonly threads: number;
  /** Default: llama.cpp. */
  readonly project?: Project;
  /** ik_llama.cpp's alone; default: off. */
  readonly flash?: boolean;
}

/** @param folder of the programs and their libraries; ik_llama.cpp's servers are not used */
export function llamaPrograms(
  folder: string,
  { threads, project = "llama.cpp", flash = false }: ProgramOptions,
): LlamaPrograms {
  const isIk = project === "ik_llama.cpp";
  const start = (name: string, given: readonly string[]): Bun.Subprocess<"ignore", "pipe", "pipe"> => {
    const env = {
      ...process.env,
      LD_LIBRARY_PATH: [resolve(folder), process.env["LD_LIBRARY_PATH"]].filter(Boolean).join(":"),
    };
    const command = [resolve(folder, name), ...given, "-t", String(threads)];
    const cwd = isIk ? tmpdir() : process.cwd(); // its batched-bench writes a log to the current folder
    return Bun.spawn(command, { env, cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  };
  const run: Run = (name, given) => textsOf(start(name, given), name);
  const serve: Serve = (file, given) => {
    const port = String(freePort());
    const child = start("llama-server", ["-m", file, "--host", "127.0.0.1", "--port", port, ...given]);
    return serverOf(child, `http://127.0.0.1:${port}`);
  };
  return {
    ...ratesBy(run, { isIk, flash }),
    ...serversBy(serve),
  };
}

type Serve = (file: string, given: readonly string[]) => Promise<Server>;

function serversBy(serve: Serve): Pick<LlamaPrograms, "embedder" | "server"> {
  return {
    async embedder(file, { tokens }) {
      const room = String(PARALLEL * tokens);
      const sizes = ["-np", String(PARALLEL), "-c", room, "-b", room, "-ub", room];
      const { post, stop } = await serve(file, ["--embedding", ...sizes]);
      return {
        async embed(input) {
          const reply = await post("/v1/embeddings", { input, model: "bench" });
          return (reply as { usage: { total_tokens: number } }).usage.total_tokens; // the API's format
        },
        stop,
      };
    },
    async server(file, { streams, ctxLen }) {
      const { post, stop } = await serve(file, ["-np", String(streams), "-c", String(streams * ctxLen)]);
      return {
        async answer(prompt, tokens) {
          const options = {
            n_predict: tokens,
            temperature: 1,
            top_k: 40,
            seed: 1,
            ignore_eos: true,
            cache_prompt: false,
          };
          const reply = await post("/completion", { prompt, ...options });
          return (reply as { tokens_predicted: number }).tokens_predicted; // the API's format
        },
        stop,
      };
    },
  };
}

type Run = (name: string, given: readonly string[]) => Promise<Texts>;

function ratesBy(
  run: Run,
  { isIk, flash }: { isIk: boolean; flash: boolean },
): Pick<LlamaPrograms, "bench" | "batched"> {
  const attention = ["-fa", flash ? "1" : "0"];
  return {
    async bench(file, { prompt, tokens, rounds }) {
      const sizes = ["-p", prompt, "-n", tokens, "-r", rounds, "-o", "json"].map(String);
      const own = isIk ? ["-rtr", "1", ...attention] : []; // weights are interleaved at load time
      const { out } = await run("llama-bench", ["-m", resolve(file), ...sizes, ...own]);
      const tests = JSON.parse(out) as {
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
      const own = isIk ? ["-rtr", ...attention] : ["--output-format", "jsonl"];
      const { out, errors } = await run("llama-batched-bench", ["-m", resolve(file), ...sizes, ...own]);
      if (isIk) return ratesInTable(errors.split("\n"));
      const line = out.split("\n").find((each) => each.startsWith("{"));
      const { speed_pp, speed_tg } = JSON.parse(line ?? "{}") as { speed_pp: number; speed_tg: number };
      return { prompt: speed_pp, decode: speed_tg };
    },
  };
}

function ratesInTable(lines: readonly string[]): Rates {
  const rows = lines.map((line) => line.split("|").slice(1, -1).map(Number));
  const row = rows.find((cells) => cells.length === COLUMNS && cells.every(Number.isFinite));
  if (!row) throw new Error(`llama-batched-bench: expected a row of ${COLUMNS} numbers, got ${lines.join("\n")}`);
  return { prompt: row[PROMPT_COLUMN]!, decode: row[DECODE_COLUMN]! };
}

interface Server {
  post(path: string, body: object): Promise<unknown>;
  stop(): void;
}

/** Resolves when the server answers. */
async function serverOf(child: Bun.Subprocess<"ignore", "pipe", "pipe">, url: string): Promise<Server> {
  const errors = child.stderr.text(); // read, so that the pipe does not fill up
  void child.stdout.text();
  const isUp = async (): Promise<boolean> => (await fetch(`${url}/health`).catch(() => undefined))?.ok ?? false;
  for (const deadline = Date.now() + START_TIMEOUT_MS; !(await isUp()); await Bun.sleep(50)) {
    if (child.exitCode !== null) throw new Error(`llama-server: ${(await errors).slice(-500)}`);
    if (Date.now() > deadline) throw new Error(`llama-server: not up within ${START_TIMEOUT_MS} ms`);
  }
  return {
    async post(path, body) {
      const headers = { "content-type": "application/json" };
      const reply = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
      if (!reply.ok) throw new Error(`llama-server: ${reply.status} ${await reply.text()}`);
      return reply.json();
    },
    stop: () => child.kill(),
  };
}

interface Texts {
  readonly out: string;
  readonly errors: string;
}

/** The texts that a process wrote; throws if it failed. */
async function textsOf(child: Bun.ReadableSubprocess, name: string): Promise<Texts> {
  const [out, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${name}: ended with ${code}: ${errors.slice(-500)}`);
  return { out, errors };
}

/** The output of a process; throws if it failed. */
export const outputOf = async (child: Bun.ReadableSubprocess, name: string): Promise<string> =>
  (await textsOf(child, name)).out;

export const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN;

function freePort(): number {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  probe.stop(true);
  return probe.port;
}
