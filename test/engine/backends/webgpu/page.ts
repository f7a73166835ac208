/**
 * What the page of browser.test.ts runs: some conformance cases on the WebGPU backend, kernels and all, as a browser
 * has it. Posts the logits of every run, or the error.
 */
import { pageGpu } from "../../../../src/engine/backends/webgpu/provider.ts";
import { makeWebGpuBackend } from "../../../../src/engine/backends/webgpu/index.ts";
import { conformanceCases, runCase } from "../../../conformance/cases.ts";

/** Where the page asks for the names of its cases, and where it posts each answer. */
export const ROUTES = { cases: "/cases", answer: "/said" } as const;

/** What it is told to run. */
export interface PageWork {
  readonly names: readonly string[];
  /** CRC-32 of the names of all cases. */
  readonly seeds: Readonly<Record<string, number>>;
}

/** What it posts, as JSON, once for each case and once more at the end. */
export type PageAnswer =
  | { readonly name: string; readonly logits: readonly (readonly number[])[] }
  | { readonly error: string }
  | { readonly done: true };

async function runAll(): Promise<void> {
  const post = (answer: PageAnswer): Promise<unknown> =>
    fetch(ROUTES.answer, { method: "POST", body: JSON.stringify(answer) });
  try {
    const { names, seeds } = (await (await fetch(ROUTES.cases)).json()) as PageWork; // what browser.test.ts serves
    // The one thing of Bun's that the cases need: each begins its random numbers with the checksum of its name.
    Object.assign(globalThis, { Bun: { hash: { crc32: (name: string) => seeds[name] } } });
    const gpu = pageGpu();
    const webGpu = makeWebGpuBackend(() => gpu);
    for (const each of conformanceCases()) {
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
