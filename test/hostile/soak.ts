/**
 * Many short generations over several models, some of them aborted, and the growth of a server's resources afterwards.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { makeRng } from "../../src/engine/text/rng.ts";
import { installFile } from "../../bench/install-file.ts";
import { childPids, eventually, type Hearth } from "../e2e/hearth.ts";

/** Resources of a server and its runners. */
export interface Held {
  /** Private memory, and their share of shared memory. */
  readonly bytes: number;
  readonly processes: number;
  readonly threads: number;
  readonly files: number;
}

export interface SoakOptions {
  readonly models: readonly string[];
  readonly requests: number;
  /** At once. */
  readonly clients: number;
  readonly seed: number;
}

/** Installs the same weights as different files, so that each has a separate runner. */
export async function installCopies(root: string, file: string, count: number): Promise<string[]> {
  const bytes = await Bun.file(file).bytes();
  const names: string[] = [];
  for (let i = 0; i < count; i++) {
    const copy = join(root, `copy-${i}.gguf`);
    await Bun.write(copy, Buffer.concat([bytes, new Uint8Array(32).fill(i)]));
    names.push(await installFile({ root, file: copy, name: `copy${i}` }));
  }
  return names;
}

export async function heldBy(hearth: Hearth): Promise<Held> {
  const pids = [hearth.pid, ...(await childPids(hearth.pid))];
  let [bytes, threads, files] = [0, 0, 0];
  for (const pid of pids) {
    const memory = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
    bytes += Number(/^Pss:\s+(\d+) kB/m.exec(memory)?.[1] ?? 0) * 1024;
    threads += Number(/^Threads:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
    files += (await Array.fromAsync(new Bun.Glob("*").scan({ cwd: `/proc/${pid}/fd`, onlyFiles: false }))).length;
  }
  return { bytes, processes: pids.length, threads, files };
}

const ENDLESS = { num_predict: -1, ignore_eos: true };

/** Number of generations that ended, were aborted, and failed otherwise, with the first error. */
export async function soak(
  hearth: Hearth,
  { models, requests, clients, seed }: SoakOptions,
): Promise<{ ended: number; aborted: number; failed: number; failure: string | undefined }> {
  const rng = makeRng(seed);
  const counts = { ended: 0, aborted: 0, failed: 0, failure: undefined as string | undefined };
  let left = requests;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const abort = new AbortController();
      const draw = Math.floor(rng.float() * 1000);
      const isAborted = draw % 5 === 0;
      const timer = isAborted ? setTimeout(() => abort.abort(), rng.float() * 40) : undefined;
      const body = {
        model: models[draw % models.length],
        prompt: `Story ${draw % 50}: once upon a time there was`,
        // one that is to be aborted does not end before, however fast the machine is
        options: { temperature: draw % 2, seed: draw, ...(isAborted ? ENDLESS : { num_predict: 4 + (draw % 13) }) },
      };
      try {
        const reply = await hearth.post("/api/generate", body, abort.signal);
        const text = await reply.text();
        if (!reply.ok || !/"done":true/.test(text)) throw new Error(`${reply.status}: ${text.slice(-200)}`);
        counts.ended++;
      } catch (error) {
        if (isAborted && abort.signal.aborted) counts.aborted++;
        else {
          counts.failed++;
          counts.failure ??= String(error);
        }
      }
      clearTimeout(timer);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return counts;
}

/** True if every slot of every model is free: as many long answers as there are slots all begin before one ends. */
export async function slotsAreFree(hearth: Hearth, models: readonly string[], slots: number): Promise<boolean> {
  if (!(await eventually(async () => /hearth_requests_running 0\b/.test(await metrics(hearth))))) return false;
  for (const model of models) if (!(await answersAtOnce(hearth, model, slots))) return false;
  return true;
}

/** True if this many answers begin before any of them ends; retries if one ends with its first token. */
async function answersAtOnce(hearth: Hearth, model: string, slots: number): Promise<boolean> {
  for (let seed = 0; seed < 10 * slots; seed += slots) {
    const abort = new AbortController();
    const begun = Array.from({ length: slots }, async (_, i) => {
      const options = { num_predict: 100_000, temperature: 1, seed: seed + i, stop: [] };
      const body = { model, prompt: `slot ${i}`, raw: true, stream: true, options };
      const reply = await hearth.post("/api/generate", body, abort.signal);
      const first = await reply.body!.getReader().read();
      if (!reply.ok) return "refused";
      return /"done":true/.test(new TextDecoder().decode(first.value)) ? "over" : "goes on";
    });
    const all = await Promise.race([Promise.all(begun), Bun.sleep(60_000).then(() => ["waits"])]);
    abort.abort();
    if (all.every((each) => each === "goes on")) return true;
    if (!all.includes("over") || all.includes("refused")) return false;
  }
  return false;
}

const metrics = async (hearth: Hearth): Promise<string> => (await fetch(`${hearth.url}/metrics`)).text();
