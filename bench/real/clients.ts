/**
 * Starts real coding agents from npm by `hearth launch` against this server with a scripted model, which calls the
 * agent's own shell tool and then answers. Prints for each agent: started, streamed, a call arrived and its result came
 * back, and that no file changed that existed before. Arguments: the folder of an `npm install --prefix FOLDER` of
 * @anthropic-ai/claude-code, @openai/codex, opencode-ai, @qwen-code/qwen-code, @continuedev/cli,
 * @earendil-works/pi-coding-agent and cline; names of agents, by default all.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { ChatRequest, InferenceEvent, Tool } from "../../src/runtime/requests/runtime.ts";
import { DONE, play } from "../../test/server/fakes.ts";
import { makeHarness } from "../../test/server/harness.ts";

const MARK = "hearth-was-here";
const LIMIT_MS = 90_000;
const PROMPT = `Run the shell command: echo ${MARK}`;
const MAIN = resolve(import.meta.dir, "../../src/main.ts");

interface Agent {
  /** The name of its command, if it differs. */
  readonly command?: string;
  readonly args: readonly string[];
  /** A settings file of the agent below the home folder, which must not change. */
  readonly settings: readonly [path: string, text: string];
}

const AGENTS: Readonly<Record<string, Agent>> = {
  claude: { args: ["-p", PROMPT, "--allowedTools", "Bash"], settings: [".claude/settings.json", "{}\n"] },
  codex: {
    args: ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", PROMPT],
    settings: [".codex/config.toml", '# mine\nmodel = "other"\n'],
  },
  // these two agents add the first key themselves if it is missing
  opencode: {
    args: ["run", PROMPT],
    settings: [
      ".config/opencode/opencode.json",
      '{ "$schema": "https://opencode.ai/config.json", "theme": "system" }\n',
    ],
  },
  continue: {
    command: "cn",
    args: ["--auto", "-p", PROMPT],
    settings: [".continue/config.yaml", "# mine\nname: mine\nversion: 1.0.0\nschema: v1\nmodels: []\n"],
  },
  cline: { args: [PROMPT], settings: [".cline/data/settings/providers.json", '{ "version": 1 }\n'] },
  pi: { args: ["-p", PROMPT], settings: [".pi/agent/models.json", '{ "providers": {} }\n'] },
  qwen: { args: ["--yolo", "--prompt", PROMPT], settings: [".qwen/settings.json", '{\n  "$version": 4\n}'] },
};

const SHELL = /^(bash|shell|shell_command|exec_command|run_shell_command|run_commands)$/i;

/** Arguments that satisfy the schema of a shell tool. */
function shellArguments({ function: { parameters } }: Tool): Record<string, unknown> {
  const { properties = {}, required = [] } = parameters as {
    properties?: Record<string, { type?: string }>;
    required?: string[];
  };
  const commandKey = ["command", "cmd", "commands"].find((key) => key in properties) ?? "command";
  const line = `echo ${MARK}`;
  const list = commandKey === "commands" ? [line] : ["bash", "-lc", line];
  const command = properties[commandKey]?.type === "array" ? list : line;
  const filler = (type: string | undefined): unknown => (type === "boolean" ? false : type === "number" ? 1000 : "it");
  const others = required.filter((key) => key !== commandKey);
  return { ...Object.fromEntries(others.map((key) => [key, filler(properties[key]?.type)])), [commandKey]: command };
}

interface Seen {
  requests: number;
  hasCalled: boolean;
  result: boolean;
}

/** Calls the shell once, and answers otherwise. */
function answer({ messages, tools = [] }: ChatRequest, seen: Seen): InferenceEvent[] {
  seen.requests++;
  const results = messages.filter(({ role }) => role === "tool");
  if (results.some(({ content }) => content.includes(MARK))) seen.result = true;
  const shell = tools.find((tool) => SHELL.test(tool.function.name));
  if (!shell || seen.hasCalled) return [{ kind: "text", text: "All " }, { kind: "text", text: "done-and-told." }, DONE];
  seen.hasCalled = true;
  const call = { id: "call_1", function: { name: shell.function.name, arguments: shellArguments(shell) } };
  return [{ kind: "toolCall", call }, DONE];
}

async function check(
  name: string,
  { command = name, args, settings }: Agent,
  bin: string,
): Promise<Record<string, unknown>> {
  if (!existsSync(join(bin, command))) return { agent: name, skipped: `${name} is not installed` };
  const home = mkdtempSync(join(tmpdir(), "hearth-agent-"));
  const seen: Seen = { requests: 0, hasCalled: false, result: false };
  const harness = await makeHarness();
  harness.runtime.script = (request) => play(answer(request as ChatRequest, seen))(request);
  const { url } = harness.listen();
  try {
    const [path, text] = settings;
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
    const env = { HOME: home, PATH: `${bin}:${process.env["PATH"]}`, HEARTH_HOST: url, HEARTH_HOME: join(home, "h") };
    const child = Bun.spawn([process.execPath, MAIN, "launch", name, "--model", "m", "--", ...args], {
      cwd: home,
      env: { ...env, DISABLE_TELEMETRY: "1", DISABLE_AUTOUPDATER: "1", OPENCODE_DISABLE_AUTOUPDATE: "1" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const timer = setTimeout(() => child.kill("SIGTERM"), LIMIT_MS);
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    const code = await child.exited;
    clearTimeout(timer);
    const streamed = out.includes("done-and-told.");
    const untouched = readFileSync(join(home, path), "utf8") === text;
    const report = {
      agent: name,
      code,
      requests: seen.requests,
      streamed,
      call: seen.hasCalled,
      result: seen.result,
      untouched,
    };
    return streamed && seen.result && untouched ? report : { ...report, tail: (out + err).slice(-600) };
  } finally {
    await harness.close();
    rmSync(home, { recursive: true, force: true });
  }
}

const [folder = ".", ...names] = process.argv.slice(2);
for (const [name, agent] of Object.entries(AGENTS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  process.stdout.write(`${JSON.stringify(await check(name, agent, resolve(folder, "node_modules/.bin")))}\n`);
}
process.exit(0);
