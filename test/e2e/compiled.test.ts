/** The program compiled into one file, run in an empty folder with a home as its only variable. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { levelsHere } from "../../src/engine/backends/host/simd-library.ts";
import { writeGguf } from "../../src/engine/formats/files/write.ts";
import { VERSION } from "../../src/base/version.ts";
import { makeModel } from "../engine/architectures/models.ts";
import { swiftShaderEnv } from "../engine/backends/webgpu/swiftshader.ts";
import { COMPILED } from "../program.ts";
import { eventually } from "./hearth.ts";

setDefaultTimeout(120_000); // compiling, and a software GPU, take minutes

const ROOT = resolve(import.meta.dir, "../..");
const TOKENS = "7,30,53,12,35";

let [folder, program, empty, model]: string[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "hearth-compiled-"));
  program = join(folder, "bin/hearth");
  empty = join(folder, "empty");
  model = join(folder, "model.gguf");
  mkdirSync(empty);
  await writeGguf(model, makeModel("llama"));
  if (COMPILED) {
    mkdirSync(dirname(program));
    linkSync(COMPILED, program);
    return;
  }
  const built = Bun.spawnSync([process.execPath, join(ROOT, "packaging/compile.ts"), "--out", program], {
    cwd: ROOT,
    stderr: "inherit",
  });
  expect(built.exitCode).toBe(0);
});
afterAll(() => rmSync(folder!, { recursive: true, force: true }));

/** @param home folder of all its data; its only variable by default */
const start = (args: readonly string[], more: Record<string, string> = {}) =>
  Bun.spawn([program!, ...args], {
    cwd: empty!,
    env: { HOME: join(folder!, "home"), ...more },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });

async function run(args: readonly string[], more: Record<string, string> = {}): Promise<string> {
  const child = start(args, more);
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect([code, err]).toEqual([0, expect.any(String)]);
  return out.trim();
}

const greedy = (backend: string, more?: Record<string, string>): Promise<string> =>
  run(["generate", "--model", model!, "--tokens", TOKENS, "--greedy", "6", "--precise", "--backend", backend], more);

describe("generate gives the reference's tokens", () => {
  const cases = ["onnx", "webgpu", ...(levelsHere().length > 0 ? ["simd"] : [])];
  test.each(cases)("on %s", async (backend) => {
    const { VK_DRIVER_FILES = "", LD_LIBRARY_PATH = "" } = backend === "webgpu" ? await swiftShaderEnv() : {};
    const more = backend === "webgpu" ? { VK_DRIVER_FILES, LD_LIBRARY_PATH } : {};
    expect(await greedy(backend, more)).toBe(await greedy("cpu"));
  });
});

test("install.sh installs the program below a prefix", async () => {
  const prefix = join(folder!, "prefix");
  const installed = Bun.spawnSync(["sh", join(ROOT, "packaging/install.sh"), program!, prefix], { env: process.env });
  expect(installed.stdout.toString()).toContain(`start it with: ${prefix}/bin/hearth serve`);
  const version = Bun.spawnSync([join(prefix, "bin/hearth"), "--version"], { env: { HOME: folder! } });
  expect(version.stdout.toString()).toContain(`hearth ${VERSION}`);
});

test.skipIf(!Bun.which("systemd-analyze"))("systemd-analyze verifies the unit", async () => {
  const unit = join(folder!, "hearth.service");
  const text = await Bun.file(join(ROOT, "packaging/hearth.service")).text();
  await Bun.write(unit, text.replace("/usr/local/bin/hearth", program!).replaceAll(/=hearth$/gm, "=root"));
  const verified = Bun.spawnSync(["systemd-analyze", "verify", "--man=no", unit]);
  const said = verified.stderr.toString().split("\n");
  expect(said.filter((line) => line.includes("hearth.service"))).toEqual([]);
});

test.skipIf(!Bun.which("node"))("the launcher of the npm package runs the program", () => {
  const launched = Bun.spawnSync(["node", join(ROOT, "packaging/launch.js"), "--version"], { cwd: folder! });
  expect(launched.stdout.toString()).toContain(`hearth ${VERSION}`);
});

test.skipIf(!Bun.which("node"))("without Bun, the launcher gets it by npx, and signals reach the program", async () => {
  const bin = join(folder!, "without-bun");
  mkdirSync(bin);
  symlinkSync(Bun.which("node")!, join(bin, "node"));
  // imitates npm: records its arguments, and answers like Bun
  writeFileSync(join(bin, "npx"), `#!/bin/sh\necho "$@" > ${bin}/asked\necho ${process.execPath}\n`, { mode: 0o755 });
  const launched = Bun.spawn([join(bin, "node"), join(ROOT, "packaging/launch.js"), "serve"], {
    env: { PATH: bin, HOME: join(folder!, "launched"), HEARTH_HOST: "127.0.0.1:0" },
    stdout: "pipe",
  });
  const { value } = await launched.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toContain(" listens on ");
  expect(await Bun.file(join(bin, "asked")).text()).toBe("--yes bun@1.4.5 -p process.execPath\n");
  launched.kill("SIGTERM");
  expect(await launched.exited).toBe(0); // the exit code of the server, which received the signal
});

test("quantize runs its worker threads", async () => {
  const out = join(folder!, "small.gguf");
  await run(["quantize", model!, out, "q8_0"]);
  const ids = await run(["generate", "--model", out, "--tokens", TOKENS, "--greedy", "2", "--backend", "cpu"]);
  expect(ids).toMatch(/^\d+,\d+$/);
});

test("serve answers a chat, and contains its pages and transforms", async () => {
  const home = join(folder!, "server");
  mkdirSync(join(home, ".hearth/transforms"), { recursive: true });
  writeFileSync(
    join(home, ".hearth/transforms/skip.ts"),
    "export default ({ payload }: { payload: { skip: boolean } }) => (payload.skip ? null : { kind: 'wake', text: 'a' });",
  );
  writeFileSync(
    join(home, ".hearth/hearth.json5"),
    `{ hooks: { enabled: true, token: "a-token-of-twenty-characters", transformsDir: "transforms",
       mappings: [{ match: { path: "skip" }, action: "wake", textTemplate: "a", transform: { module: "skip.ts" } }] } }`,
  );
  const server = start(["serve"], { HOME: home, HEARTH_HOST: "127.0.0.1:0" });
  try {
    let greeting = "";
    const decoder = new TextDecoder();
    for await (const bytes of server.stdout) {
      greeting += decoder.decode(bytes);
      if (greeting.includes("\n")) break;
    }
    const url = /http:\/\/\S+/.exec(greeting)![0];
    const post = (path: string, body: object): Promise<Response> =>
      fetch(url + path, {
        method: "POST",
        headers: { authorization: "Bearer a-token-of-twenty-characters" },
        body: JSON.stringify(body),
      });
    const messages = [{ role: "user", content: "Hello! Who are you?" }];
    const chat = await post("/api/chat", { model: "hearth", messages, stream: false, options: { temperature: 0 } });
    expect(((await chat.json()) as { message: { content: string } }).message.content).toContain("My name is Hearth");
    const format = { enum: ["red", "green"], description: "so long that it is compiled in a thread. ".repeat(40) };
    const chosen = await post("/api/chat", { model: "hearth", messages, stream: false, format });
    expect(((await chosen.json()) as { message: { content: string } }).message.content).toMatch(/^"(red|green)"$/);
    const found = await Promise.all(
      ["/docs", "/docs/swagger-ui.css", "/ui"].map(async (path) => (await fetch(url + path)).status),
    );
    expect(found).toEqual([200, 200, 200]);
    const health = /CMD (BUN_BE_BUN=1 .*)/.exec(await Bun.file(join(ROOT, "packaging/Containerfile")).text())![1]!;
    const asked = ["sh", "-c", health.replace("127.0.0.1:11434", new URL(url).host)];
    expect(Bun.spawnSync(asked, { cwd: empty!, env: { PATH: `${folder!}/bin:/usr/bin:/bin` } }).exitCode).toBe(0);
    expect((await post("/hooks/skip", { skip: true })).status).toBe(204);
    expect((await post("/hooks/skip", { skip: false })).status).toBeLessThan(300);
    expect(readdirSync(empty!)).toEqual([]);
    const onnx = new Bun.Glob(".cache/hearth/program-*/node_modules/onnxruntime-node/**");
    const unpacked = await Array.fromAsync(onnx.scan({ cwd: home, dot: true }));
    expect(unpacked.length > 0).toBe(levelsHere().length === 0); // only used files are unpacked
  } finally {
    server.kill("SIGTERM");
    expect(await eventually(() => server.exitCode !== null, 30_000)).toBe(true);
  }
  expect(server.exitCode).toBe(0);
});
