/**
 * `hearth launch`: starts an installed coding agent with a model of this server, by its environment and arguments. An
 * agent that reads its models only from a file gets a temporary one. The agent's own settings stay unchanged.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Client, Json, ServerAddress } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { withModel } from "../client/missing-model.ts";
import { chooseModel } from "./choose.ts";

interface Target extends ServerAddress {
  readonly model: string;
  /** Tokens of its context, if they are known before it is loaded. */
  readonly context: number | undefined;
  /** Writes a file for this start. Returns its path. Keys belong into the environment. */
  file(name: string, text: string): string;
  /** Writes a file in a folder of the agent that lasts. Returns the folder. */
  kept(name: string, text: string): string;
}

interface Launch {
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

interface Tool {
  readonly install: string;
  /** The name of its command, if it differs. */
  readonly command?: string;
  launch(target: Target): Launch;
}

/** Minimum tokens that agents send before the first question, and a context in which they work well. */
const CONTEXT_MIN = 16_384;
const CONTEXT = 65_536;

/** For agents that require a key although the server does not. */
const ANY_KEY = "hearth";

const TOOLS = {
  claude: {
    install: "npm install -g @anthropic-ai/claude-code",
    launch: ({ url, apiKey, model }) => ({
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: apiKey ?? ANY_KEY,
        ANTHROPIC_API_KEY: "", // it would override the token
        ANTHROPIC_MODEL: model,
        ANTHROPIC_DEFAULT_OPUS_MODEL: model,
        ANTHROPIC_DEFAULT_SONNET_MODEL: model,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
        CLAUDE_CODE_SUBAGENT_MODEL: model,
      },
      args: ["--model", model],
    }),
  },
  codex: {
    install: "npm install -g @openai/codex",
    launch: ({ url, apiKey, model }) => {
      const provider = {
        name: "Hearth",
        base_url: `${url}/v1`,
        wire_api: "responses",
        ...(apiKey ? { env_key: "HEARTH_API_KEY" } : {}),
      };
      // TOML's other quotes: on Windows npm's programs are .cmd files, whose arguments cannot have double quotes
      const settings = Object.entries(provider).map(([key, value]) => `model_providers.hearth.${key}='${value}'`);
      const all = ["model_provider='hearth'", ...settings];
      return { env: {}, args: [...all.flatMap((each) => ["-c", each]), "--model", model] };
    },
  },
  opencode: {
    install: "npm install -g opencode-ai",
    launch: ({ url, apiKey, model }) => {
      const options = { baseURL: `${url}/v1`, ...(apiKey ? { apiKey } : {}) };
      const hearth = {
        npm: "@ai-sdk/openai-compatible",
        name: "Hearth",
        options,
        models: { [model]: { name: model } },
      };
      return {
        env: { OPENCODE_CONFIG_CONTENT: JSON.stringify({ provider: { hearth } }) },
        args: ["--model", `hearth/${model}`],
      };
    },
  },
  qwen: {
    install: "npm install -g @qwen-code/qwen-code",
    launch: ({ url, apiKey, model }) => ({
      env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: apiKey ?? ANY_KEY, OPENAI_MODEL: model },
      args: [],
    }),
  },
  continue: {
    command: "cn",
    install: "npm install -g @continuedev/cli",
    launch: ({ url, apiKey, model, file }) => {
      const about = { name: model, provider: "openai", model, apiBase: `${url}/v1` };
      const key = { apiKey: "${{ secrets.HEARTH_API_KEY }}" };
      const models = [{ ...about, ...key, roles: ["chat", "edit", "apply"], capabilities: ["tool_use"] }];
      const config = { name: "Hearth", version: "1.0.0", schema: "v1", models };
      return {
        env: { HEARTH_API_KEY: apiKey ?? ANY_KEY },
        args: ["--config", file("config.yaml", JSON.stringify(config))], // JSON is YAML
      };
    },
  },
  pi: {
    install: "npm install -g @earendil-works/pi-coding-agent",
    launch: ({ url, apiKey, model, context, file }) => {
      const about = { id: model, name: model, reasoning: false, input: ["text"] };
      const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
      const models = [{ ...about, cost, contextWindow: context ?? CONTEXT, maxTokens: 8192 }];
      const provider = { baseUrl: `${url}/v1`, apiKey: "HEARTH_API_KEY", api: "openai-completions", models };
      const text = `export default (pi) => pi.registerProvider("hearth", ${JSON.stringify(provider)});`;
      return {
        env: { HEARTH_API_KEY: apiKey ?? ANY_KEY },
        args: ["--extension", file("hearth.ts", text), "--provider", "hearth", "--model", model],
      };
    },
  },
  cline: {
    install: "npm install -g cline",
    launch: ({ url, apiKey, model, kept }) => {
      const provider = "openai-compatible";
      const settings = { provider, model, baseUrl: `${url}/v1` };
      const entry = { settings, updatedAt: new Date().toISOString(), tokenSource: "manual" };
      const all = { version: 1, lastUsedProvider: provider, modes: {}, providers: { [provider]: entry } };
      return {
        env: { OPENAI_API_KEY: apiKey ?? ANY_KEY },
        // the agent's own settings have other keys for the address
        args: ["--data-dir", kept("settings/providers.json", JSON.stringify(all))],
      };
    },
  },
  aider: {
    install: "python -m pip install aider-install && aider-install",
    launch: ({ url, apiKey, model }) => ({
      env: { OLLAMA_API_BASE: url, ...(apiKey ? { OLLAMA_API_KEY: apiKey } : {}) },
      args: ["--model", `ollama_chat/${model}`],
    }),
  },
} as const satisfies Readonly<Record<string, Tool>>;

export type ToolName = keyof typeof TOOLS;

export interface LaunchOptions {
  readonly tool: ToolName;
  readonly model: string | undefined;
  /** For the tool. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly server: ServerAddress;
}

/** The exit code of the tool. Throws if it is not installed, or the model is missing. */
export async function launch(cli: CliContext, options: LaunchOptions): Promise<number> {
  const { tool, args, env, server } = options;
  const { command = tool, install, launch: make }: Tool = TOOLS[tool];
  const program = Bun.which(command, { PATH: env["PATH"] ?? "" });
  if (program === null) throw new Error(`'${command}' is not installed: ${install}`);
  const model = options.model ?? (await chooseModel(cli));
  const context = await checkModel(cli, model);
  using files = new Files();
  const kept = (name: string, text: string): string => writeIn(join(cli.home, "launch", tool), name, text);
  const made = make({ ...server, model, context, file: (name, text) => files.write(name, text), kept });
  return await run([program, ...made.args, ...args], { ...env, ...made.env }); // awaited before its files are removed
}

/** Warns about a model that agents cannot work with. Returns the tokens of its context, if known. */
async function checkModel({ client, terminal }: CliContext, model: string): Promise<number | undefined> {
  const { capabilities = [], model_info: info = {} } = await withModel(client, model, () =>
    client.post("/api/show", { model }),
  );
  if (!capabilities.includes("tools")) {
    terminal.note(`Warning: '${model}' cannot call tools, which agents need: try 'hearth pull qwen3:8b'`);
  }
  const context = await contextOf(client, model, info);
  if (context !== undefined && context < CONTEXT_MIN) {
    const advice = `start the server with HEARTH_CONTEXT_LENGTH=${CONTEXT}, or take a model with more`;
    terminal.note(
      `Warning: '${model}' has a context of ${context} tokens here, which is too short for agents: ${advice}`,
    );
  }
  return context;
}

/** Tokens of a model's context: of the loaded model, or its trained length, up to the server's setting. */
async function contextOf(client: Client, model: string, info: Json): Promise<number | undefined> {
  const none = (): Json => ({});
  const [{ models = [] }, { settings = {} }] = await Promise.all([
    client.get("/api/ps").catch(none),
    client.get("/api/system").catch(none),
  ]);
  const loaded = (models as Json[]).find(({ name }) => name === model || name === `${model}:latest`);
  if (loaded) return Number(loaded["context_length"]) || undefined;
  const trained = Number(Object.entries(info).find(([key]) => key.endsWith(".context_length"))?.[1]) || undefined;
  const most = Number(settings["context_length"]) || undefined; // it may be "auto"
  return trained === undefined || most === undefined ? (trained ?? most) : Math.min(trained, most);
}

/** The exit code of a program that has the terminal. */
async function run(words: readonly string[], env: LaunchOptions["env"]): Promise<number> {
  const child = Bun.spawn([...words], { env, stdio: ["inherit", "inherit", "inherit"] });
  const leave = (): void => {}; // the tool handles Ctrl+C
  const end = (): void => child.kill("SIGTERM");
  process.on("SIGINT", leave).on("SIGTERM", end);
  try {
    await child.exited;
  } finally {
    process.off("SIGINT", leave).off("SIGTERM", end);
  }
  const signal = child.signalCode === null ? 0 : constants.signals[child.signalCode as NodeJS.Signals];
  return child.exitCode ?? 128 + signal; // the exit code that shells use
}

/** Files of one start, in a folder that only this user reads. */
class Files {
  #folder: string | undefined;

  write(name: string, text: string): string {
    this.#folder ??= mkdtempSync(join(tmpdir(), "hearth-launch-"));
    writeIn(this.#folder, name, text);
    return join(this.#folder, name);
  }

  [Symbol.dispose](): void {
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Returns the folder. */
function writeIn(folder: string, name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
  return folder;
}
