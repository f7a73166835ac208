/**
 * Records answers of a llama-server on its own routes, with the embedded model, for tests of ours: their shapes, and
 * greedy texts, ids and embeddings.
 *
 *   bun bench/record-llama-server.ts LLAMA_SERVER    the program; its libraries lie beside it
 */
import { dirname, resolve } from "node:path";
import { isObject } from "../src/base/index.ts";

const MODEL = resolve(import.meta.dir, "../models/hearth/hearth.gguf");
const RECORDED = resolve(import.meta.dir, "../test/server/llama-server-answers.json");
const START_MS = 30_000;
/** Number of kept values of a vector, and of characters of a text. */
const [VALUES_KEPT, CHARS_KEPT] = [3, 200];

type Asked = readonly [path: string, body?: object];

const greedy = { prompt: "Hello", n_predict: 3, temperature: 0 };
/** By the arguments of the program: requests by the name of their answer. */
const RUNS: readonly (readonly [given: readonly string[], Readonly<Record<string, Asked>>])[] = [
  [
    [],
    {
      health: ["/health"],
      props: ["/props"],
      slots: ["/slots"],
      lora: ["/lora-adapters"],
      scale: ["/lora-adapters", []],
      completion: ["/completion", { ...greedy, n_predict: 4 }],
      probs: ["/completion", { ...greedy, n_probs: 2, return_tokens: true }],
      post_probs: ["/completion", { ...greedy, n_probs: 2, post_sampling_probs: true }],
      several: ["/completion", { prompt: ["Hello", "There"], n_predict: 2 }],
      stream: ["/completion", { ...greedy, n_probs: 2, stream: true, return_progress: true, timings_per_token: true }],
      tokenize: ["/tokenize", { content: "Hello á", with_pieces: true }],
      detokenize: ["/detokenize", { tokens: [610, 32] }],
      template: ["/apply-template", { messages: [{ role: "user", content: "hi" }] }],
      error: ["/completion", { n_predict: 2 }],
    },
  ],
  [["--embeddings", "--pooling", "mean"], { embedding: ["/embedding", { content: ["hi", "there"] }] }],
  [
    ["--reranking"],
    {
      rerank: ["/reranking", { query: "hi", documents: ["a", "b"], top_n: 1 }],
      rerank_tei: ["/reranking", { query: "hi", texts: ["a", "b"], return_text: true }],
    },
  ],
];

const [program] = process.argv.slice(2);
if (program === undefined) throw new Error("expected the program of llama-server");
const answers: Record<string, unknown> = {};
for (const [given, asked] of RUNS) {
  const server = await start(resolve(program), given);
  try {
    for (const [name, request] of Object.entries(asked)) answers[name] = cut(await ask(server.url, request));
  } finally {
    server.child.kill();
    await server.child.exited;
  }
}
await Bun.write(RECORDED, `${JSON.stringify(answers)}\n`);

async function start(path: string, given: readonly string[]): Promise<{ url: string; child: Bun.Subprocess }> {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = probe;
  probe.stop(true);
  const own = ["-m", MODEL, "-a", "hearth", "-c", "2048", "-np", "2", "--slots", "--port", String(port)];
  const env = { ...process.env, LD_LIBRARY_PATH: dirname(path) };
  const child = Bun.spawn([path, ...own, ...given], { env, stdio: ["ignore", "ignore", "ignore"] });
  const url = `http://127.0.0.1:${port}`;
  for (const from = performance.now(); performance.now() - from < START_MS; await Bun.sleep(200)) {
    if ((await fetch(`${url}/health`).catch(() => undefined))?.ok) return { url, child };
  }
  child.kill();
  throw new Error(`${path}: does not answer`);
}

/** The answer, or the frames of a stream. */
async function ask(url: string, [path, body]: Asked): Promise<unknown> {
  const response = await fetch(url + path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  const text = await response.text();
  if (!text.startsWith("data: ")) return JSON.parse(text);
  const lines = text.split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

/** The same answer with shortened vectors and texts. */
function cut(value: unknown): unknown {
  if (typeof value === "string") return value.replace(MODEL, "hearth.gguf").slice(0, CHARS_KEPT);
  if (Array.isArray(value)) {
    const isVector = value.length > VALUES_KEPT && value.every((each) => typeof each === "number");
    return (isVector ? value.slice(0, VALUES_KEPT) : value).map(cut);
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, cut(each)]));
}
