/** A first evening with Hearth on every system, from source and compiled: the answers are the same. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DTYPES, exactModel, plainFiles, writeFolder } from "../library/convert/hugging-face.ts";
import { runHearth, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

const GGUF = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const TOKEN = "a-hook-token-of-32-characters-xx";
/** The embedded model's answer on Linux. */
const ANSWER = "Once upon a time, there lived a brave fox named Emil. He loved to play near the forest. One day,";
/** Each takes seconds under wine: `HEARTH_TEST_KILLS=20 .ci/wine` for more. */
const KILLS = Number(process.env["HEARTH_TEST_KILLS"] ?? 3);

let home: string;
let hearth: Hearth;

const start = async (): Promise<void> => {
  hearth = await startHearth({ home, isBare: true });
};

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "hearth anywhere ö "));
  mkdirSync(join(home, ".hearth/transforms"), { recursive: true });
  writeFileSync(
    join(home, ".hearth/transforms/pick.ts"),
    "export default ({ payload }: { payload: { n: number } }) => (payload.n < 0 ? null : { message: `n ${payload.n}` });",
  );
  const mapping = { match: { path: "pick" }, action: "wake", textTemplate: "a", transform: { module: "pick.ts" } };
  const hooks = { enabled: true, token: TOKEN, transformsDir: "transforms", mappings: [mapping] };
  writeFileSync(join(home, ".hearth/hearth.json5"), JSON.stringify({ hooks }), { mode: 0o600 });
  await start();
});
afterAll(async () => {
  await hearth.stop();
  rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
});

const chat = async (model: string): Promise<string> => {
  const messages = [{ role: "user", content: "Tell me a story about a fox." }];
  const options = { temperature: 0, num_predict: 24 };
  const reply = await hearth.post("/api/chat", { model, messages, stream: false, options });
  expect(reply.status, await reply.clone().text()).toBe(200);
  return ((await reply.json()) as { message: { content: string } }).message.content;
};

const command = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await runHearth(args, { home, env: { HEARTH_HOST: hearth.url } });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return stdout;
};

const blobs = (): string[] => readdirSync(join(home, ".hearth/models/blobs"));

test("the embedded model is installed and answers as on Linux", async () => {
  expect(await chat("hearth")).toBe(ANSWER);
  expect(await command("list")).toContain("hearth:latest");
});

/** Makes a model of the embedded one's file, which is named by its absolute path. */
async function make(name: string): Promise<string> {
  writeFileSync(join(home, name), `FROM ${GGUF}\nPARAMETER seed ${name.length}\n`);
  return command("create", name, "-f", join(home, name));
}

test("a model is created from a GGUF", async () => {
  await make("own");
  expect(await chat("own")).toBe(ANSWER);
});

test("names are found in any capitals, also names that Windows has for devices", async () => {
  // weights of its own: models that share them are loaded under the name that was first
  writeFileSync(join(home, "odd.gguf"), Buffer.concat([readFileSync(GGUF), new Uint8Array(64)]));
  writeFileSync(join(home, "Odd"), "FROM ./odd.gguf\n");
  await command("create", "Nul:com1", "-f", join(home, "Odd"));
  expect(await command("list")).toContain("Nul:com1");
  expect(await chat("nuL:COM1")).toBe(ANSWER);
  const { models } = (await (await fetch(`${hearth.url}/api/ps`)).json()) as { models: { name: string }[] };
  expect(models.map(({ name }) => name)).toContain("Nul:com1");
  await command("rm", "NUL:com1");
  expect(await command("list")).not.toContain("com1");
});

test("a model is created from a folder of safetensors, and quantized", async () => {
  await writeFolder(join(home, "folder"), plainFiles(exactModel("llama", DTYPES.F16), "F16"));
  writeFileSync(join(home, "FromFolder"), "FROM ./folder\n");
  for (const more of [[], ["-q", "q8_0"]]) {
    await command("create", "folder", "-f", join(home, "FromFolder"), ...more);
    const options = { num_predict: 2, temperature: 0 };
    const reply = await hearth.post("/api/generate", {
      model: "folder",
      prompt: "a",
      raw: true,
      stream: false,
      options,
    });
    expect(await reply.json()).toMatchObject({ eval_count: 2 });
  }
});

test("a loaded model is removed, and its blob can be created again at once", async () => {
  const bytes = Buffer.concat([readFileSync(GGUF), new Uint8Array(32)]);
  const blob = `sha256-${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
  writeFileSync(join(home, "longer.gguf"), bytes);
  writeFileSync(join(home, "Longer"), "FROM ./longer.gguf\n");
  for (let round = 0; round < 2; round++) {
    await command("create", "longer", "-f", join(home, "Longer"));
    expect(blobs()).toContain(blob);
    expect(await chat("longer")).toBe(ANSWER);
    await command("rm", "longer");
    expect(blobs()).not.toContain(blob);
  }
});

test("a model is pulled from a registry", async () => {
  await make("pushed");
  const store = join(home, ".hearth/models");
  const [host] = readdirSync(join(store, "manifests"));
  const manifest = readFileSync(join(store, "manifests", host!, "library", "pushed", "latest"));
  await using registry = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ url }) {
      const { pathname } = new URL(url);
      const digest = /\/blobs\/sha256:([0-9a-f]{64})$/.exec(pathname)?.[1];
      if (digest) return new Response(Bun.file(join(store, "blobs", `sha256-${digest}`)));
      return pathname.endsWith("/manifests/latest") ? new Response(manifest) : new Response("", { status: 404 });
    },
  });
  const model = `http://127.0.0.1:${registry.port}/library/pulled`;
  const reply = await hearth.post("/api/pull", { model, insecure: true, stream: false });
  expect([reply.status, await reply.json()]).toEqual([200, { status: "success" }]);
});

const call = (n: number): Promise<Response> =>
  fetch(`${hearth.url}/hooks/pick`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ n }),
  });

test("a transform decides whether a hook runs", async () => {
  expect((await call(-1)).status).toBe(204);
  expect((await call(1)).status).toBe(200);
});

test(
  "the server restarts after each kill, with every model that it had accepted",
  async () => {
    await make("base");
    const before = await command("list");
    for (let kill = 0; kill < KILLS; kill++) {
      await command("cp", "base", `copy${kill}`);
      hearth.process.kill("SIGKILL");
      await hearth.process.exited;
      await start();
    }
    const after = await command("list");
    for (let kill = 0; kill < KILLS; kill++) expect(after).toContain(`copy${kill}:latest`);
    expect(after.split("\n")).toHaveLength(before.split("\n").length + KILLS);
    expect(await chat("base")).toBe(ANSWER);
  },
  120_000 + KILLS * 30_000,
);
