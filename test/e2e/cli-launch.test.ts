/** `hearth launch`: the agent's arguments and environment. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { shareMachineCache } from "../program.ts";
import { runHearth } from "./hearth.ts";
import { sitDownAt } from "./person.ts";

setDefaultTimeout(60_000);

const home = mkdtempSync(join(tmpdir(), "hearth-launch-"));
const bin = join(home, "bin");
const PATH = `${bin}:${process.env["PATH"]}`;
let server: ReturnType<typeof Bun.serve>;
let url = "";
beforeAll(() => {
  mkdirSync(bin);
  shareMachineCache(home);
  const files = 'for each in "$@"; do if [ -f "$each" ]; then echo "file $(cat "$each")"; fi; done';
  for (const name of ["claude", "codex", "opencode", "cn", "pi", "cline", "aider"]) {
    writeFileSync(join(bin, name), `#!/bin/sh\nprintf "arg %s\\n" "$@"\n${files}\nenv\nexit 7\n`);
    chmodSync(join(bin, name), 0o755);
  }
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      if (new URL(request.url).pathname === "/api/tags") {
        return Response.json({ models: [{ name: "m:1", size: 5, capabilities: ["completion", "tools"] }] });
      }
      if (request.method === "GET") return Response.json({ error: "no" }, { status: 404 });
      const { model } = (await request.json()) as { model: string };
      if (model === "none") return Response.json({ error: "no" }, { status: 404 });
      const model_info = { "llama.context_length": model === "short" ? 4096 : 131_072 };
      return Response.json({ model_info, capabilities: model === "plain" ? ["completion"] : ["completion", "tools"] });
    },
  });
  url = `http://127.0.0.1:${server.port}`;
});
afterAll(() => {
  void server.stop(true);
  rmSync(home, { recursive: true });
});

interface Launched {
  readonly args: string[];
  /** The texts of files that arguments name. */
  readonly files: string[];
  readonly env: Record<string, string>;
  readonly code: number;
  readonly stderr: string;
}

async function launched(args: readonly string[], env: Record<string, string> = {}): Promise<Launched> {
  const more = { HEARTH_HOST: url, PATH, ...env };
  const { stdout, stderr, code } = await runHearth(["launch", ...args], { home, env: more });
  const lines = stdout.split("\n");
  return {
    args: lines.filter((line) => line.startsWith("arg ")).map((line) => line.slice(4)),
    files: lines.filter((line) => line.startsWith("file ")).map((line) => line.slice(5)),
    env: Object.fromEntries(lines.flatMap((line) => [/^(\w+)=(.*)$/.exec(line)?.slice(1) ?? []])),
    code,
    stderr,
  };
}

test("claude gets the server and model by variables, and its own arguments; its exit code is returned", async () => {
  const { args, env, code, stderr } = await launched(["claude", "--model", "m:1", "--", "-p", "hi there"]);
  expect([args, code, stderr]).toEqual([["--model", "m:1", "-p", "hi there"], 7, ""]);
  expect(env).toMatchObject({ ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: "hearth", ANTHROPIC_MODEL: "m:1" });
  expect((await launched(["claude", "--model", "m:1"], { HEARTH_API_KEY: "k" })).env["ANTHROPIC_AUTH_TOKEN"]).toBe("k");
});

test("codex gets the server and model by arguments, and the name of the key's variable if a key is set", async () => {
  const { args } = await launched(["codex", "--model", "m:1"]);
  expect(args).toContain(`model_providers.hearth.base_url='${url}/v1'`);
  expect(args.slice(-2)).toEqual(["--model", "m:1"]);
  expect(args.join(" ")).not.toContain("env_key");
  expect(args.join(" ")).not.toMatch(/["%^&|<>]/); // Windows' .cmd files cannot have them
  const keyed = await launched(["codex", "--model", "m:1"], { HEARTH_API_KEY: "secret" });
  expect(keyed.args).toContain("model_providers.hearth.env_key='HEARTH_API_KEY'");
  expect(keyed.args.join(" ")).not.toContain("secret"); // other users see arguments
});

test("opencode and aider get the server by variables and the model by arguments", async () => {
  const { args, env } = await launched(["opencode", "--model", "m:1"]);
  expect(args).toEqual(["--model", "hearth/m:1"]);
  expect(JSON.parse(env["OPENCODE_CONFIG_CONTENT"] ?? "")).toMatchObject({
    provider: { hearth: { options: { baseURL: `${url}/v1` }, models: { "m:1": {} } } },
  });
  const aider = await launched(["aider", "--model", "m:1"]);
  expect([aider.args, aider.env["OLLAMA_API_BASE"]]).toEqual([["--model", "ollama_chat/m:1"], url]);
});

test("continue and pi get the server and model by a temporary file, without the key", async () => {
  const key = { HEARTH_API_KEY: "k-1234" };
  const { args, env, files } = await launched(["continue", "--model", "m:1", "--", "-p", "hi"], key);
  expect([args[0], ...args.slice(2)]).toEqual(["--config", "-p", "hi"]);
  expect(JSON.parse(files[0]!)).toMatchObject({
    models: [{ model: "m:1", apiBase: `${url}/v1`, apiKey: "${{ secrets.HEARTH_API_KEY }}" }],
  });
  const pi = await launched(["pi", "--model", "m:1"], key);
  expect(pi.args.slice(2)).toEqual(["--provider", "hearth", "--model", "m:1"]);
  expect(pi.files[0]).toContain(`"baseUrl":"${url}/v1","apiKey":"HEARTH_API_KEY"`);
  expect(pi.files[0]).toContain('"contextWindow":131072');
  expect([env["HEARTH_API_KEY"], pi.env["HEARTH_API_KEY"]]).toEqual(["k-1234", "k-1234"]);
  expect(JSON.stringify([args, files, pi.args, pi.files])).not.toContain("k-1234");
  expect([existsSync(args[1]!), existsSync(pi.args[1]!)]).toEqual([false, false]); // removed at the end
});

test("cline gets the server and model by a folder that stays, without the key", async () => {
  const { args, env } = await launched(["cline", "--model", "m:1"], { HEARTH_API_KEY: "secret" });
  const folder = join(home, ".hearth/launch/cline");
  expect([args, env["OPENAI_API_KEY"]]).toEqual([["--data-dir", folder], "secret"]);
  const text = readFileSync(join(folder, "settings/providers.json"), "utf8");
  expect(JSON.parse(text)).toMatchObject({
    providers: { "openai-compatible": { settings: { model: "m:1", baseUrl: `${url}/v1` } } },
  });
  expect(text).not.toContain("secret");
});

test("launch writes no file to the home folder", async () => {
  const before = readdirSync(home);
  await launched(["claude", "--model", "m:1"]);
  expect(readdirSync(home)).toEqual(before);
});

test("launch --undo starts nothing, and says that no settings were changed", async () => {
  const { args, code, stderr } = await launched(["claude", "--undo"]);
  expect([args, code, stderr]).toEqual([[], 0, "launch changes no settings of claude: there is nothing to undo\n"]);
});

test("a missing program, model or argument is an error; a model without tools or with a short context, a warning", async () => {
  const missing = await launched(["qwen", "--model", "m:1"], { PATH: bin });
  expect([missing.code, missing.stderr]).toEqual([
    1,
    "Error: 'qwen' is not installed: npm install -g @qwen-code/qwen-code\n",
  ]);
  expect((await launched(["claude", "--model", "none"])).stderr).toStartWith("Error: model 'none' not found: ");
  expect((await launched(["claude"])).stderr).toMatch(
    /^Error: missing argument '--model'\nUsage: hearth launch .+\nModels: m:1\n$/,
  );
  expect((await launched(["vim"])).stderr).toContain("Allowed choices are claude, codex");
  expect((await launched(["claude", "--model", "plain"])).stderr).toBe(
    "Warning: 'plain' cannot call tools, which agents need: try 'hearth pull qwen3:8b'\n",
  );
  expect((await launched(["claude", "--model", "short"])).stderr).toBe(
    "Warning: 'short' has a context of 4096 tokens here, which is too short for agents: " +
      "start the server with HEARTH_CONTEXT_LENGTH=65536, or take a model with more\n",
  );
});

test("launch without a model asks for one at a terminal", async () => {
  const person = sitDownAt(["launch", "claude"], home, { HEARTH_HOST: url, PATH });
  expect(await person.sees("Number or name (m:1): ")).toBe(true);
  await person.types("\r", /arg --model\r\narg m:1\r\n/);
  expect(await person.ended()).toBe(7);
});
