/**
 * Writes the vectors that sentence-transformers gives for MiniLM to test/real/recorded/.
 *
 *   python3 -m venv VENV && VENV/bin/pip install torch sentence-transformers   (some gigabytes)
 *   bun bench/real/record-vectors.ts VENV/bin/python
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fetchReal } from "./fetch.ts";
import { RECORDED } from "./recorded.ts";
import { EMBEDDED } from "./texts.ts";

const [python] = process.argv.slice(2);
if (python === undefined) throw new Error("expected the Python of an environment with sentence-transformers");
const folder = await mkdtemp(join(tmpdir(), "hearth-vectors-"));
try {
  const [texts, out] = [join(folder, "texts.json"), join(folder, "out.f32")];
  await Bun.write(texts, JSON.stringify(EMBEDDED));
  const command = [python, join(import.meta.dir, "sentences.py"), await fetchReal("minilm"), texts, out];
  const child = Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"] });
  if ((await child.exited) !== 0) throw new Error(`${python} ended with ${child.exitCode}`);
  const vectors = Float16Array.from(new Float32Array(await Bun.file(out).arrayBuffer()));
  await Bun.write(join(RECORDED, "minilm.f16"), new Uint8Array(vectors.buffer));
} finally {
  await rm(folder, { recursive: true });
}
