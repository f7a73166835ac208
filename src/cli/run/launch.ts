/**
 * `hearth launch`: starts an installed coding agent with a model of this server. It sets the agent's environment and
 * arguments and writes no file, so the agent is otherwise unchanged.
 */
import { constants } from "node:os";
import type { ServerAddress } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { withModel } from "../client/missing.ts";
import { chooseModel } from "./choose.ts";

interface Target extends ServerAddress {
  readonly model: string;
}

interface Launch {
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

interface Tool {
  readonly install: string;
  launch(target: Target): Launch;
}

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
      const settings = Object.entries(provider).map(([key, value]) => `model_providers.hearth.${key}="${value}"`);
      const all = ['model_provider="hearth"', ...settings];
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
export async function launch(context: CliContext, options: LaunchOptions): Promise<number> {
  const { tool, args, env, server } = options;
  const program = Bun.which(tool, { PATH: env["PATH"] ?? "" });
  if (program === null) throw new Error(`'${tool}' is not installed: ${TOOLS[tool].install}`);
  const { client, terminal } = context;
  const model = options.model ?? (await chooseModel(context));
  const { capabilities = [] } = await withModel(client, model, () => client.post("/api/show", { model }));
  if (!capabilities.includes("tools")) terminal.note(`Warning: '${model}' cannot call tools, which agents need`);
  const made: Launch = TOOLS[tool].launch({ ...server, model });
  const child = Bun.spawn([program, ...made.args, ...args], {
    env: { ...env, ...made.env },
    stdio: ["inherit", "inherit", "inherit"],
  });
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
