/**
 * One reference model for each kind of state: read in chunks and token by token it answers as in one run, and beside
 * another sequence and from a snapshot bit by bit. All models on all backends: bench/archs.ts.
 */
import { expect } from "bun:test";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { goldenTest } from "../../golden.ts";
import { wrongInParts } from "./in-parts.ts";
import { openReference, referencesWith } from "./references.ts";

const NAMES = [
  "archs/jamba-dense", // a selective scan
  "archs/kimi-linear-moe", // latent attention and the delta rule
  "archs/mamba2-dense",
  "real/deepseek2_V3_R1_671b_MLA_",
  "real/gemma4_e4b_llama.cpp_", // keys shared between layers
  "real/gpt_oss_llama.cpp_", // sinks, a window
  "real/llama3.2_tied_rope_freqs_",
  "twins/gemma3n",
  "twins/lfm2", // short convolutions
  "twins/nemotron-h-moe",
  "twins/qwen35",
];

const references = referencesWith(undefined);
for (const name of NAMES) {
  for (const [backendName, backend] of Object.entries({ cpu: cpuBackend, simd: simdBackend })) {
    goldenTest(`${name} in parts on ${backendName}`, async () => {
      const reference = references.find((each) => each.name === name)!; // goldenTest checked that they exist
      const { model } = openReference(reference);
      expect(await wrongInParts(loadProgram(model), reference.tokens, { backend, precise: true })).toBeUndefined();
      model.close();
    });
  }
}
