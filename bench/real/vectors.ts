/**
 * all-MiniLM-L6-v2 through the server, compared with sentence-transformers: its authors' folder converted, on each
 * backend, and the same weights as an ONNX graph, which transformers.js runs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { swiftShaderEnv } from "../../test/engine/backends/webgpu/swiftshader.ts";
import { runHearth, startHearth } from "../../test/e2e/hearth.ts";
import type { Figure } from "../report/record.ts";
import { fetchReal } from "./fetch.ts";
import { RECORDED } from "./recorded.ts";
import { EMBEDDED, SENTENCES } from "./texts.ts";

const DIM = 384;
/** Number of texts per backend. A GPU in software takes minutes for texts that fill the context. */
const BACKENDS = { simd: EMBEDDED, wasm: EMBEDDED, onnx: EMBEDDED, webgpu: SENTENCES };
/** Texts per request: no request takes long, even in software. */
const BATCH = 8;
/** Scores that are this close may swap their order, because the weights are converted to half floats. */
const TIE = 1e-3;

type Vector = readonly number[];

/** @param python of an environment for export-onnx.py; undefined: no graph is made */
export async function compareVectors(tell: (figure: Figure) => void, python: string | undefined): Promise<void> {
  const flat = [...new Float16Array(await Bun.file(join(RECORDED, "minilm.f16")).arrayBuffer())];
  const expected = EMBEDDED.map((_, i) => flat.slice(i * DIM, (i + 1) * DIM));
  const folder = await fetchReal("minilm");
  for (const [backend, texts] of Object.entries(BACKENDS)) {
    const gpu = backend === "webgpu" ? await swiftShaderEnv() : {};
    compare(tell, `MiniLM, ${backend}`, await vectorsOf(folder, texts, { HEARTH_BACKEND: backend, ...gpu }), expected);
  }
  if (python === undefined) return;
  const out = mkdtempSync(join(tmpdir(), "hearth-onnx-"));
  try {
    const command = [python, join(import.meta.dir, "export-onnx.py"), folder, out];
    const child = Bun.spawn(command, { stdio: ["ignore", "ignore", "pipe"] });
    const [errors, code] = await Promise.all([child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`export-onnx.py ended with ${code}: ${errors.slice(-500)}`);
    compare(tell, "MiniLM, its ONNX graph by transformers.js", await vectorsOf(out, EMBEDDED, {}), expected);
  } finally {
    rmSync(out, { recursive: true });
  }
}

/** Vectors by the server. */
async function vectorsOf(folder: string, texts: readonly string[], env: Record<string, string>): Promise<Vector[]> {
  const hearth = await startHearth({ env });
  try {
    const modelfile = join(hearth.home, "Modelfile");
    await Bun.write(modelfile, `FROM ${folder}\nPARAMETER num_ctx 256\n`);
    const created = await runHearth(["create", "minilm", "-f", modelfile], {
      home: hearth.home,
      env: { HEARTH_HOST: hearth.url },
    });
    if (created.code !== 0) throw new Error(created.stderr);
    const vectors: Vector[] = [];
    for (let at = 0; at < texts.length; at += BATCH) {
      const reply = await hearth.post("/api/embed", { model: "minilm", input: texts.slice(at, at + BATCH) });
      const { embeddings, error } = (await reply.json()) as { embeddings?: Vector[]; error?: string };
      if (!embeddings) throw new Error(error);
      vectors.push(...embeddings);
    }
    return vectors;
  } finally {
    await hearth.stop();
  }
}

function compare(tell: (figure: Figure) => void, what: string, ours: Vector[], theirs: Vector[]): void {
  const cosines = ours.map((vector, i) => cosine(vector, theirs[i]!));
  tell({
    what: `${what}, ${ours.length} texts`,
    measure: "least cosine with sentence-transformers' vector",
    unit: "",
    ours: [Math.min(...cosines)],
    goal: { of: "value", atLeast: 0.9999 },
  });
  const pairs = ours.flatMap((_, i) =>
    ours.slice(0, i).map((_, j) => ({ ours: cosine(ours[i]!, ours[j]!), theirs: cosine(theirs[i]!, theirs[j]!) })),
  );
  tell({
    what: `${what}, ${pairs.length} pairs`,
    measure: `in another order, and more than ${TIE} apart`,
    unit: "pairs",
    ours: [inverted(pairs)],
    goal: { of: "value", atMost: 0 },
  });
}

/** Pairs whose order differs between the two lists of scores. */
function inverted(pairs: readonly { ours: number; theirs: number }[]): number {
  const ranked = pairs.toSorted((a, b) => b.theirs - a.theirs);
  return ranked.filter((pair, i) =>
    ranked.slice(i + 1).some((below) => below.ours > pair.ours && pair.theirs - below.theirs > TIE),
  ).length;
}

const dot = (a: Vector, b: Vector): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const cosine = (a: Vector, b: Vector): number => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
