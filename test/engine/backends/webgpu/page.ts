/**
 * The script of browser.test.ts's page: some conformance cases on the WebGPU backend, as in a browser. Posts the logits
 * of every run, or the error.
 */
import { pageGpu } from "../../../../src/engine/backends/webgpu/provider.ts";
import { makeWebGpuBackend } from "../../../../src/engine/backends/webgpu/index.ts";
import { conformanceCases, runCase } from "../../../conformance/cases.ts";
import { rowCases } from "../../../conformance/row-cases.ts";

/** Routes to get the names of its cases, and to post each answer. */
export const ROUTES = { cases: "/cases", answer: "/said" } as const;

/** Its work. */
export interface PageWork {
  readonly names: readonly string[];
  /** CRC-32 of the names of all cases, and of their memories. */
  readonly seeds: Readonly<Record<string, number>>;
}

/** Its messages, as JSON, one for each case and one more at the end. */
export type PageAnswer =
  | { readonly name: string; readonly logits: readonly (readonly number[])[] }
  | { readonly error: string }
  | { readonly done: true };

async function runAll(): Promise<void> {
  const post = (answer: PageAnswer): Promise<unknown> =>
    fetch(ROUTES.answer, { method: "POST", body: JSON.stringify(answer) });
  try {
    const { names, seeds } = (await (await fetch(ROUTES.cases)).json()) as PageWork; // served by browser.test.ts
    // The one thing of Bun's that the cases need: each begins its random numbers with the checksum of its name.
    Object.assign(globalThis, { Bun: { hash: { crc32: (name: string) => seeds[name] } } });
    const gpu = pageGpu();
    const webGpu = makeWebGpuBackend(() => gpu);
    for (const each of [...conformanceCases(), ...rowCases()]) {
      if (!names.includes(each.name)) continue;
      const runs = await runCase(webGpu, each);
      await post({ name: each.name, logits: runs.map((logits) => [...logits]) });
    }
    await post({ done: true });
  } catch (error) {
    await post({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

if ("document" in globalThis) void runAll();
