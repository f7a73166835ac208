/** A server that is killed repeatedly while it uploads, creates, quantizes, copies and deletes. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quants } from "../../src/engine/formats/quant/index.ts";
import { blobName, digestOf } from "../../src/library/store/digest.ts";
import { readReferences } from "../../src/library/store/references.ts";
import { openStore } from "../../src/library/store/store.ts";
import { eventually, startHearth, type Hearth } from "../e2e/hearth.ts";
import { encodeGguf } from "../engine/formats/gguf/fixture.ts";
import { testRng } from "../seed.ts";
import { halves } from "../library/fixture.ts";

setDefaultTimeout(300_000); // 15 s alone

/** Each costs a server's start; `HEARTH_TEST_KILLS` sets more. */
const KILLS = Number(process.env["HEARTH_TEST_KILLS"] ?? 24);
/** Lives of a kind, of which the last three end at a known moment; requests for answers follow them. */
const LIVES = 8;
/** The moment of a kill. */
type Moment = "any" | "model to be deleted" | "file half written" | "after a quantization";
const momentOf = (life: number): Moment =>
  (["after a quantization", "any", "any", "any", "any", "any", "model to be deleted", "file half written"] as const)[
    life % LIVES
  ]!;

const HALVES = encodeGguf({
  metadata: { "general.architecture": "llama", "general.file_type": { u32: 1 }, "llama.block_count": { u32: 1 } },
  tensors: [{ name: "token_embd.weight", shape: [256, 1100], quant: quants.f16, data: halves(256 * 1100) }],
});

let home: string;
let root: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "hearth-kill-"));
  root = join(home, ".hearth/models");
});
afterAll(() => rmSync(home, { recursive: true }));

/** POSTs and reads the answer to its end; a killed server is not an error. */
async function call(hearth: Hearth, path: string, body: object, method = "POST"): Promise<void> {
  const response = await fetch(hearth.url + path, { method, body: JSON.stringify(body) }).catch(() => undefined);
  await response?.text().catch(() => {});
}

const make = (hearth: Hearth, model: string, n: number): Promise<void> =>
  call(hearth, "/api/create", { model, modelfile: `FROM hearth\nSYSTEM number ${n}\nPARAMETER num_predict 2` });

async function upload(hearth: Hearth, bytes: Uint8Array): Promise<string> {
  const digest = digestOf(bytes);
  const sent = fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: bytes });
  await sent.then((response) => response.text()).catch(() => {});
  return digest;
}

/** Everything at once. @param keeps true: what is to be deleted stays */
async function work(hearth: Hearth, n: number, keeps = false): Promise<void> {
  const small = { model: "small", files: { "x.gguf": digestOf(HALVES) }, quantize: "q4_K_M" };
  await Promise.all([
    upload(hearth, new Uint8Array(300_000).fill(n).fill(n >> 8, 9)),
    make(hearth, "kept", n),
    make(hearth, "gone", n).then(() => (keeps ? undefined : call(hearth, "/api/delete", { model: "gone" }, "DELETE"))),
    call(hearth, "/api/delete", { model: "small" }, "DELETE").then(() => call(hearth, "/api/create", small)),
    call(hearth, "/api/copy", { source: "kept", destination: "copy" }),
  ]);
}

async function workUntilKilled(hearth: Hearth, life: number): Promise<void> {
  const { process } = hearth;
  const keeps = momentOf(life) === "model to be deleted";
  for (let n = 0; process.exitCode === null && process.signalCode === null; n++)
    await work(hearth, life * 256 + n, keeps);
}

const temporary = (): string[] => readdirSync(join(root, "blobs")).filter((name) => name.startsWith(".tmp-"));

/** True if none of a process's threads runs. */
const isStopped = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).every((id) => {
    const stat = `/proc/${pid}/task/${id}/stat`;
    return !existsSync(stat) || /\) [TZX] /.test(readFileSync(stat, "utf8"));
  });

/** Stops a server while it writes a file; false if it has written none that is not whole. */
async function stopsWithin({ pid }: Hearth): Promise<boolean> {
  if (temporary().length === 0) return false;
  process.kill(pid, "SIGSTOP");
  expect(await eventually(() => isStopped(pid))).toBe(true);
  if (temporary().length > 0) return true;
  process.kill(pid, "SIGCONT");
  return false;
}

/** Opens the store like the next server; returns its content. */
async function checkStore(): Promise<{ names: string[]; leftovers: number }> {
  const store = await openStore(root);
  const bad: string[] = [];
  const models = await store.list((path, reason) => bad.push(`${path}: ${reason}`));
  expect(bad).toEqual([]);
  for (const { displayName } of models) await store.load(displayName);
  const { digests } = await readReferences(root);
  const used = new Set([...digests].map(blobName));
  let leftovers = 0;
  for (const name of readdirSync(join(root, "blobs"))) {
    const path = join(root, "blobs", name);
    if (name.startsWith(".tmp-")) leftovers++;
    else expect(blobName(digestOf(readFileSync(path)))).toBe(name);
    if (!used.has(name) && name !== blobName(digestOf(HALVES))) rmSync(path); // an hour would have the same effect
  }
  return { names: models.map(({ displayName }) => displayName), leftovers };
}

async function hasModel(hearth: Hearth, model: string): Promise<boolean> {
  const response = await fetch(`${hearth.url}/api/tags`);
  const { models } = (await response.json()) as { models: { name: string }[] };
  return models.some(({ name }) => name === `${model}:latest`);
}

async function answer(hearth: Hearth, model: string): Promise<number> {
  const body = { model, prompt: "Hi", stream: false, options: { num_predict: 2, seed: 1 } };
  const response = await hearth.post("/api/generate", body);
  return ((await response.json()) as { eval_count: number }).eval_count;
}

/** Waits for the moment, if it is a known one. */
async function waitFor(moment: Moment, hearth: Hearth): Promise<void> {
  if (moment === "any") return;
  const isThere = {
    "model to be deleted": () => hasModel(hearth, "gone"),
    "file half written": () => stopsWithin(hearth),
    "after a quantization": () => hasModel(hearth, "small"),
  }[moment];
  expect([moment, await eventually(isThere, 120_000)]).toEqual([moment, true]);
}

test("after a kill at any moment, the store opens, and every earlier model is whole and answers", async () => {
  const first = await startHearth({ home });
  await upload(first, HALVES);
  await make(first, "earlier", 0);
  const startedMs = performance.now();
  await work(first, 0);
  const workMs = performance.now() - startedMs;
  await first.stop();
  const earlier = await (await openStore(root)).load("earlier");
  const rng = testRng("hostile/kill");
  for (let life = 1; life <= KILLS; life++) {
    const hearth = await startHearth({ home });
    const working = workUntilKilled(hearth, life);
    const moment = momentOf(life);
    await waitFor(moment, hearth);
    if (moment === "any") await Bun.sleep(rng.float() * 1.3 * workMs); // any moment, also of the second round
    await hearth.stop();
    await working;
    const { names, leftovers } = await checkStore();
    expect(names).toEqual(expect.arrayContaining(["hearth:latest", "earlier:latest", "kept:latest"]));
    if (moment === "model to be deleted") expect(names).toContain("gone:latest");
    if (moment === "file half written") expect(leftovers).toBeGreaterThan(0);
    expect((await (await openStore(root)).load("earlier")).layers).toEqual(earlier.layers);
    if (life % LIVES > 0) continue;
    const next = await startHearth({ home });
    for (const model of ["hearth", "earlier", "kept"]) expect([model, await answer(next, model)]).toEqual([model, 2]);
    await next.stop();
  }
});
