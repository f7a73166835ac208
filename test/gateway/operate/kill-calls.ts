/** Kills gateways during turns with effects, and counts these. */
import { Database } from "bun:sqlite";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundled } from "../../bundled.ts";
import { testRng } from "../../seed.ts";

export interface KillReport {
  readonly runs: number;
  /** Runs that said that the end of a call is unknown. */
  readonly unknown: number;
  /** Calls that were made again, as their tools allow. */
  readonly repeated: number;
  /** Empty: all is well. */
  readonly faults: readonly string[];
}

interface RunRow {
  readonly id: string;
  readonly action: string;
  readonly state: string;
  readonly answer: string | null;
}

export async function killDuringCalls(kills: number): Promise<KillReport> {
  const program = await bundled(join(import.meta.dir, "killable-calls.ts"));
  const server = join(import.meta.dir, "../agent/effect-server.ts");
  const folder = mkdtempSync(join(tmpdir(), "hearth-kill-calls-"));
  const random = testRng("operate/kill-calls");
  const start = (task: string) =>
    Bun.spawn([process.execPath, program, folder, task, server], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
  try {
    for (let i = 0; i < kills; i++) {
      const child = start("work");
      const lines = child.stdout.getReader();
      await lines.read(); // it is ready
      if (i % 2 === 0) await Bun.sleep(random.float() * 700);
      else {
        const effect = nextEffect(join(folder, "effects"));
        await lines.read(); // it has accepted more
        await effect; // then a call is under way
        await Bun.sleep(random.float() * 40);
      }
      child.kill("SIGKILL");
      await child.exited;
    }
    if ((await start("drain").exited) !== 0) throw new Error("the last gateway failed");
    const db = new Database(join(folder, "gateway.db"), { readonly: true });
    const runs = db.query<RunRow, []>("SELECT id, action, state, answer FROM runs").all();
    db.close();
    const file = join(folder, "effects");
    return reportOf(runs, existsSync(file) ? readFileSync(file, "utf8").split("\n") : []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Resolves once the file has grown, or after three seconds of looking. */
async function nextEffect(file: string): Promise<void> {
  const size = (): number => (existsSync(file) ? statSync(file).size : 0);
  const before = size();
  for (let i = 0; i < 1500 && size() === before; i++) await Bun.sleep(2);
}

function reportOf(runs: readonly RunRow[], effects: readonly string[]): KillReport {
  const faults: string[] = [];
  let unknown = 0;
  let repeated = 0;
  for (const { id, action, state, answer } of runs) {
    const [, n = ""] = /number (\S+);/.exec(action) ?? [];
    const done = (tool: string): string[] => effects.filter((line) => line.startsWith(`${tool} ${n} `));
    const [once, keyed, again] = [done("once"), done("keyed"), done("again")];
    const isUnknown = answer?.includes("results: interrupted, did keyed, did again;") ?? false;
    const isPlain = answer === "results: did once, did keyed, did again;";
    const fault = (text: string): void => void faults.push(`${id}: ${text}: ${state}, ${answer}`);
    if (state !== "succeeded") fault("did not succeed");
    if (!isPlain && !isUnknown) fault("has another answer");
    if (isUnknown && !answer?.includes("Note: a call of fx/once was interrupted.")) fault("does not say so");
    if (once.length > 1) fault("had an effect twice");
    if (isPlain && once.length !== 1) fault("lost an effect");
    if (new Set(keyed).size !== 1) fault(`had ${new Set(keyed).size} keys`);
    if (again.length === 0) fault("lost a repeatable effect");
    unknown += Number(isUnknown);
    repeated += Number(keyed.length > 1) + Number(again.length > 1);
  }
  return { runs: runs.length, unknown, repeated, faults };
}
