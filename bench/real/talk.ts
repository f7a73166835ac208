/**
 * Python's clients with trained weights: one scripted conversation each (clients.py), and Open WebUI in a browser
 * (open-webui.ts). Counts the steps of each that hold.
 *
 *   bun bench/real/talk.ts PYTHON… [--webui PROGRAM] [--only NAME,…] [--record]
 *
 * PYTHON: of environments as clients.py and open-webui.ts describe them; aider needs one of its own. Clients that none
 * of them has are named. `--only`: some clients; `--record` then keeps the figures of the others.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runHearth, startHearth } from "../../test/e2e/hearth.ts";
import { readRecords, writeRecord, type Figure } from "../report/record.ts";
import { TEMPLATE } from "./answers.ts";
import { CALLS } from "./conversations.ts";
import { fetchReal } from "./fetch.ts";

const CLIENTS = [
  "openai",
  "ollama",
  "anthropic",
  "litellm",
  "langchain",
  "llama-index",
  "dspy",
  "aider",
  "instructor",
  "pydantic-ai",
  "openai-agents",
  "smolagents",
  "haystack",
  "llm",
];
const WEBUI = "open-webui";
const { values: flags, positionals: pythons } = parseArgs({
  options: { webui: { type: "string" }, only: { type: "string" }, record: { type: "boolean" } },
  allowPositionals: true,
});
const only = flags.only?.split(",") ?? [...CLIENTS, WEBUI];
const chosen = CLIENTS.filter((name) => only.includes(name));
const figures: Figure[] = [];
const hearth = await startHearth();
try {
  const file = await fetchReal("gemma");
  await create("gemma", `FROM ${file}\nTEMPLATE """${TEMPLATE}"""\n`);
  // aider sets no limit, and a pretrained model seldom ends
  await create("caller", `FROM ${file}\nTEMPLATE """${await Bun.file(CALLS).text()}"""\nPARAMETER num_predict 200\n`);
  await create("minilm", `FROM ${await fetchReal("minilm")}\n`);
  for (const client of chosen) {
    for (const python of pythons) {
      const command = [python, join(import.meta.dir, "clients.py"), hearth.url, "gemma", "caller", "minilm", client];
      if (await tell(client, command)) break;
    }
  }
} finally {
  await hearth.stop();
}
if (flags.webui !== undefined && only.includes(WEBUI))
  for (const api of ["ollama", "openai"])
    await tell(`${WEBUI}, ${api}`, ["bun", join(import.meta.dir, "open-webui.ts"), flags.webui, api]);
const missing = chosen.filter((client) => !figures.some(({ part }) => part === client));
if (missing.length > 0) console.log(`not installed: ${missing.join(", ")}`);
const earlier = flags.only === undefined ? undefined : readRecords().get("clients");
if (flags.record) writeRecord("clients", { title: "Clients with trained weights", figures }, earlier);

async function create(name: string, modelfile: string): Promise<void> {
  const path = join(hearth.home, "Modelfile");
  await Bun.write(path, modelfile);
  const env = { HEARTH_HOST: hearth.url };
  const { code, stderr } = await runHearth(["create", name, "-f", path], { home: hearth.home, env });
  if (code !== 0) throw new Error(stderr);
}

/** Runs a script that prints `ok` or `NOT` for each step. False where the client is not installed. */
async function tell(what: string, command: readonly string[]): Promise<boolean> {
  const child = Bun.spawn([...command], { stdio: ["ignore", "pipe", "pipe"] });
  const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  const steps = out.split("\n").filter((line) => /^(ok|NOT) /.test(line));
  const bad = steps.filter((line) => line.startsWith("NOT"));
  for (const line of bad) console.log(line);
  if (steps.length === 0) {
    if (!out.includes("is not installed")) throw new Error(`${what}: ${errors.slice(-800)}`);
    return false;
  }
  const goal = { of: "value", atLeast: steps.length } as const;
  figures.push({
    part: what,
    what: "a scripted conversation",
    measure: `steps that hold, of ${steps.length}`,
    unit: "",
    ours: [steps.length - bad.length],
    goal,
  });
  console.log(`${what}: ${steps.length - bad.length} of ${steps.length}`);
  return true;
}
