/** Completion in the shells themselves, if they are installed. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { HEARTH } from "../program.ts";
import { isolatedEnv, runHearth } from "./hearth.ts";

setDefaultTimeout(60_000);

const NAMES = ["hearth:latest", "qwen3:4b", "qwen3:8b", "$(touch pwned)", "a b", "`id`:x", "-rf"];
const home = mkdtempSync(join(tmpdir(), "hearth-completion-"));
let server: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  writeFileSync(join(home, "hearth"), `#!/bin/sh\nexec '${HEARTH.join("' '")}' "$@"\n`);
  chmodSync(join(home, "hearth"), 0o755);
  const models = NAMES.map((name) => ({ name }));
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ models }) });
});
afterAll(() => {
  void server.stop(true);
  rmSync(home, { recursive: true });
});

const env = (): Record<string, string> => ({ HEARTH_HOST: `127.0.0.1:${server.port}` });

/** The program's candidates for the last of these words. */
async function offered(...words: string[]): Promise<string[]> {
  const { code, stdout } = await runHearth(["__complete", "--", ...words], { home, env: env() });
  expect(code).toBe(0);
  return stdout.split("\n").slice(0, -1);
}

describe("the program offers", () => {
  test("commands, without the hidden ones", async () => {
    const found = await offered("");
    expect(found).toEqual(expect.arrayContaining(["serve", "run", "models", "hooks", "completion"]));
    expect(found.filter((each) => /^(__complete|signin|login)$/.test(each))).toEqual([]);
    expect(await offered("pu")).toEqual(["pull", "push"]);
    expect(await offered("hooks", "m")).toEqual(["mail"]);
    expect(await offered("completion", "")).toEqual(["bash", "zsh", "fish", "powershell"]);
  });

  test("flags, and their values", async () => {
    expect(await offered("show", "hearth", "--")).toEqual(expect.arrayContaining(["--license", "--json", "--help"]));
    expect(await offered("hooks", "list", "--state", "d")).toEqual(["dead"]);
    expect(await offered("create", "m", "-q", "q4_K")).toEqual(["q4_K_S", "q4_K_M"]);
    expect(await offered("quantize", "in.gguf", "out.gguf", "q8")).toEqual(["q8_0"]);
    expect(await offered("quantize", "")).toEqual([]);
    expect(await offered("devices", "--backend", "w")).toEqual(["webgpu", "wasm"]);
  });

  test("models, without names that a shell would interpret", async () => {
    expect(await offered("run", "")).toEqual(["hearth:latest", "qwen3:4b", "qwen3:8b"]);
    expect(await offered("rm", "hearth", "qwen3:")).toEqual(["qwen3:4b", "qwen3:8b"]);
    expect(await offered("create", "")).toEqual([]);
    expect(await offered("run", "hearth", "")).toEqual([]);
  });

  test("no models without a server", async () => {
    const { code, stdout } = await runHearth(["__complete", "--", "run", ""], {
      home,
      env: { HEARTH_HOST: "127.0.0.1:1" },
    });
    expect([code, stdout]).toEqual([0, ""]);
  });
});

/** Programs that ask the script about a line, and print its candidates. */
const SHELLS: Readonly<Record<string, (line: string) => string>> = {
  bash: (line) => `
    eval "$(hearth completion bash)"
    COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}
    _hearth_complete; printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (line) => `
    compdef() { :; }; compadd() { print -rl -- "\${@:2}"; }; _files() { print files; }
    eval "$(hearth completion zsh)"
    line='${line}'; words=("\${(@s: :)line}"); CURRENT=\${#words}
    _hearth`,
  fish: (line) => `hearth completion fish | source; complete -C '${line}' | string split -f1 \\t`,
};

describe.each(Object.entries(SHELLS))("%s", (shell, script) => {
  const isThere = Bun.which(shell) !== null;
  const offers = async (line: string): Promise<string[]> => {
    const flags = shell === "zsh" ? ["-f"] : shell === "fish" ? ["-N"] : ["--norc"];
    const child = Bun.spawn([shell, ...flags, "-c", script(line)], {
      cwd: home,
      env: { ...isolatedEnv(home, env()), PATH: `${home}:${process.env["PATH"]}` },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect(stderr).toBe("");
    return stdout.split("\n").filter((each) => each !== "");
  };

  test.skipIf(!isThere)("completes commands, flags and models", async () => {
    expect(await offers("hearth pu")).toEqual(["pull", "push"]);
    expect(await offers("hearth show --sys")).toEqual(["--system"]);
    expect(await offers("hearth run hea")).toEqual(["hearth:latest"]);
  });

  test.skipIf(!isThere)("completes a name after a colon", async () => {
    // bash replaces only the text after the colon
    expect(await offers("hearth show qwen3:4")).toEqual([shell === "bash" ? "4b" : "qwen3:4b"]);
  });

  test.skipIf(!isThere)("does not run commands in the names of a server's models", async () => {
    await offers("hearth run ");
    expect(await Bun.file(join(home, "pwned")).exists()).toBe(false);
  });
});

test("an unknown shell is refused, and the error lists the known ones", async () => {
  const { code, stderr } = await runHearth(["completion", "tcsh"], { home });
  expect([code, stderr]).toEqual([1, expect.stringContaining("Allowed choices are bash, zsh, fish, powershell")]);
});
