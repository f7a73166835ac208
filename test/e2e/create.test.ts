/** Models made over HTTP: that they answer, and that killing the server at any moment costs none of them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { blobName, digestOf } from "../../src/store/digest.ts";
import { openStore } from "../../src/store/store.ts";
import { putModel } from "../store/fixture.ts";
import { ndjson, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

describe("a model made from the embedded one", () => {
  let hearth: Hearth;
  beforeAll(async () => {
    hearth = await startHearth();
  });
  afterAll(() => hearth.stop());

  const chat = async (model: string) => {
    const messages = [{ role: "user", content: "Tell me a story about a fox." }];
    const body = { model, messages, stream: false, options: { seed: 7 } };
    return (await (await hearth.post("/api/chat", body)).json()) as Record<string, any>;
  };

  test("answers under its own system message and parameters", async () => {
    const modelfile = "FROM hearth\nSYSTEM Answer in one word.\nPARAMETER num_predict 3\nPARAMETER temperature 0";
    const steps: string[] = [];
    for await (const step of ndjson(await hearth.post("/api/create", { model: "short", modelfile }))) {
      steps.push(step["status"]);
    }
    expect(steps.at(-1)).toBe("success");
    const own = await chat("short");
    const base = await chat("hearth");
    expect(own).toMatchObject({ model: "short", done_reason: "length", eval_count: 3 });
    expect(own["prompt_eval_count"]).toBeGreaterThan(base["prompt_eval_count"]); // the system message is in the prompt
    expect(base["eval_count"]).toBeGreaterThan(3);
  });

  test("answers when it came as an upload", async () => {
    const bytes = readFileSync(join(import.meta.dir, "../../models/hearth/hearth.gguf"));
    const digest = digestOf(bytes);
    const uploaded = await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: bytes });
    const from = await uploaded.text();
    const made = await hearth.post("/api/create", { model: "uploaded", modelfile: `FROM ${from}`, stream: false });
    expect(await made.json()).toEqual({ status: "success" });
    expect((await chat("uploaded"))["message"].content.length).toBeGreaterThan(20);
  });

  test("can be deleted while it is loaded, and what others need stays", async () => {
    await hearth.post("/api/copy", { source: "hearth", destination: "doomed" });
    await chat("doomed");
    const body = JSON.stringify({ model: "doomed" });
    expect((await fetch(`${hearth.url}/api/delete`, { method: "DELETE", body })).status).toBe(200);
    expect((await chat("doomed"))["error"]).toBe("model 'doomed' not found");
    expect((await chat("hearth"))["message"].content.length).toBeGreaterThan(20);
  });
});

test("a start clears the store of what was left half-written long ago, unless told not to", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-prune-"));
  const left = join(home, ".hearth/models/manifests/.tmp-left");
  mkdirSync(dirname(left), { recursive: true });
  for (const [keep, stays] of [
    ["true", true],
    ["false", false],
  ] as const) {
    writeFileSync(left, "half");
    utimesSync(left, 1e9, 1e9);
    const hearth = await startHearth({ home, env: { HEARTH_NOPRUNE: keep } });
    await hearth.stop();
    expect([keep, existsSync(left)]).toEqual([keep, stays]);
  }
  rmSync(home, { recursive: true });
});

/** Creates, uploads, copies and deletes for ever, against a server in the same process. */
const WORKER = `
  const at = (path) => import("${join(import.meta.dir, "../../src")}/" + path);
  const { makeApp } = await at("server/app.ts");
  const { openStore } = await at("store/store.ts");
  const { makeLibrary } = await at("store/library.ts");
  const root = process.argv.at(-1);
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const store = await openStore(root);
  const library = makeLibrary({ root, importDirs: [], noPrune: false, log });
  const config = { host: { hostname: "127.0.0.1", port: 0 }, origins: [], apiKeys: [] };
  const app = makeApp({ store, library, config, log, version: "1", now: () => new Date() });
  const call = async (method, path, body) => {
    const response = await app.handle(new Request("http://localhost/api/" + path, { method, body }));
    await response.text();
  };
  const sha = (bytes) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  const pieces = (bytes) => new ReadableStream({
    async start(controller) {
      for (let i = 0; i < bytes.length; i += 65536) { controller.enqueue(bytes.subarray(i, i + 65536)); await 0; }
      controller.close();
    },
  });
  const upload = async (n) => {
    const bytes = new Uint8Array(2_000_000).fill(n);
    await call("POST", "blobs/sha256:" + sha(bytes), pieces(bytes));
  };
  const make = (name, n) =>
    call("POST", "create", JSON.stringify({ model: name, modelfile: "FROM base\\nSYSTEM number " + n }));
  console.log("working");
  for (let n = 0; ; n++) {
    await Promise.all([
      upload(n),
      make("kept", n),
      make("gone" + (n % 3), n).then(() => call("DELETE", "delete", JSON.stringify({ model: "gone" + (n % 3) }))),
      call("POST", "copy", JSON.stringify({ source: "kept", destination: "copy" })),
    ]);
  }`;

test("whenever the server is killed, the store opens with every earlier model intact", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-kill-"));
  const root = join(home, "models");
  await putModel(root, "base", { texts: [["system", "Base."]] });
  for (const delayMs of [0, 3, 11, 29, 47, 71, 97, 131]) {
    const worker = Bun.spawn([process.execPath, "-e", WORKER, "--", root], { stdout: "pipe", stderr: "inherit" });
    await worker.stdout.getReader().read();
    await Bun.sleep(delayMs);
    worker.kill("SIGKILL");
    await worker.exited;
    const store = await openStore(root);
    const bad: string[] = [];
    const models = await store.list((path, reason) => bad.push(`${path}: ${reason}`));
    expect(bad).toEqual([]);
    for (const { displayName } of models) await store.load(displayName);
    expect((await store.load("base")).system).toBe("Base.");
    for (const name of readdirSync(join(root, "blobs"))) {
      const path = join(root, "blobs", name);
      if (name.startsWith(".tmp-"))
        rmSync(path); // what an hour would do
      else expect(blobName(digestOf(readFileSync(path)))).toBe(name);
    }
  }
  expect((await (await openStore(root)).load("kept")).system).toStartWith("number ");
  rmSync(home, { recursive: true });
});
