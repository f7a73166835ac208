/** The table of models, from the registries, the facts about families, and the last check of references. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { archs } from "../../src/engine/architectures/index.ts";
import { AppError } from "../../src/base/errors.ts";
import { encoderSpecOf } from "../../src/engine/hearing/encoders/index.ts";
import type { ClipModel, EncoderModel } from "../../src/engine/vision/clip.ts";
import { projectorOf } from "../../src/engine/vision/projectors/index.ts";
import { convertible } from "../../src/library/convert/archs/index.ts";
import { FAMILIES } from "./families.ts";

/** The result of checking an architecture's reference models. */
export interface Checked {
  /** Reference models within their bound, by name. */
  readonly references: readonly string[];
  /** The largest normalised mean square error among float weights. */
  readonly nmse: number;
  /** Unsupported parts of any reference model, by backend. */
  readonly missing: Readonly<Record<string, readonly string[]>>;
}

/** By architecture. */
export type CheckedModels = Readonly<Record<string, Checked>>;

export const BACKENDS = ["simd", "webgpu", "onnx"] as const;

/** Supported image encoders, by `clip.projector_type`. */
export const projectorKinds = (): ReadonlySet<string> => kindsOf((model) => projectorOf(model as ClipModel));
/** Supported audio encoders. */
export const audioEncoderKinds = (): ReadonlySet<string> => kindsOf(encoderSpecOf);

function kindsOf(open: (model: EncoderModel) => unknown): ReadonlySet<string> {
  try {
    open({ path: "", kind: "" } as EncoderModel); // an unknown kind is refused before anything is read
  } catch (error) {
    const list = error instanceof AppError ? /expected one of (.*), got none$/.exec(error.message)?.[1] : undefined;
    if (list !== undefined) return new Set(list.split(", "));
  }
  throw new Error("a projector without a kind was expected to be refused with the list of those that there are");
}

/** Architectures whose trained weights are tested by `bun run test real`. */
const TRAINED: ReadonlySet<string> = new Set(["bert", "gemma3", "whisper"]);
const ORIGINALS = join(import.meta.dir, "../../test/library/convert/originals.json.gz");

/** Architectures whose logits or states equal the original implementation's, converted from its folder. */
function originalArchs(): ReadonlySet<string> {
  const text = new TextDecoder().decode(Bun.gunzipSync(readFileSync(ORIGINALS)));
  const originals = JSON.parse(text) as Record<string, { config: { architectures: [keyof typeof convertible] } }>;
  return new Set(Object.values(originals).map(({ config: { architectures } }) => convertible[architectures[0]].arch));
}

export function makeTable(checked: CheckedModels): string {
  const originals = originalArchs();

  const kinds = projectorKinds();
  const rows = Object.keys(archs)
    .toSorted((a, b) => a.localeCompare(b, "en"))
    .map((arch) => [...rowOf(arch, checked[arch], kinds), proofOf(arch, checked[arch], originals)]);
  const head = ["family", "architecture", "makes", "tools", "thinks", "images", "backends", "checked", "proof"];
  return `${INTRODUCTION}${hearing()}\n${[head, head.map(() => "-"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`;
}

/** The audio encoders, with the architectures of models that have them. */
function hearing(): string {
  const archsOf = (kind: string): string =>
    Object.entries(FAMILIES)
      .filter(([, { hears }]) => hears?.includes(kind))
      .map(([arch]) => `\`${arch}\``)
      .join(", ");
  const lines = [...audioEncoderKinds()].map((kind) => `- ${kind}: ${archsOf(kind)}\n`);
  return `
These encoders hear recordings, for models of these architectures. Their rows equal llama.cpp's
within 10^-5 with random weights. Trained weights were not tried, except for Whisper's own: with
these its rows equal transformers' within 10^-10.

${lines.join("")}`;
}

const INTRODUCTION = `# Models

Made by \`bun bench/models-table.ts\` from the registries; not edited by hand. An architecture is what
a GGUF says of itself in \`general.architecture\`.

- **makes**: text, vectors, or both. A model that makes text makes vectors too, by pooling. A
  decoder whose file says \`attention.causal = false\` reads both ways and makes vectors only: on
  \`simd\`, \`webgpu\`, \`wasm\` and \`cpu\`, unless its layers have windows, recurrences, sinks, or latent
  or shared keys.
- Diffusion models fill in their answer in any order: [api.md](api.md#diffusion-models).
- **tools**: the format of calls that the family's chat models write; a blank: as the model's
  template shows, or none.
- **images**: the image encoders (\`clip.projector_type\`) of the family that run here; those in
  parentheses do not yet. They and their models run on \`simd\`, \`webgpu\`, \`wasm\` and \`cpu\`:
  [gpus.md](gpus.md).
- **backends**: the backends that have kernels for all of it; \`wasm\` runs what \`simd\` runs; \`cpu\` is
  the reference and runs everything. DeepSeek 3.2, GLM 5 and MiniMax M3 read only the best of a long
  context's positions (2,048 at most).
- **checked**: reference models whose logits or vectors were compared with llama.cpp's, and the
  largest normalised mean square error among them; \`+ twins\`: files in the layout of other
  converters too. For almost all, one model has sharp attention, so that a wrong rotation or a lost
  window would show (\`bench/mutations.ts\`).
- **proof**: the strongest evidence for a family. \`trained\`: weights that somebody trained, against
  another program (Gemma 3 270M against llama.cpp, all-MiniLM-L6-v2 against sentence-transformers,
  Whisper base against transformers: \`bun run test real\`, and
  [REPORT.md](../bench/REPORT.md#trained-weights)). \`original\`: random weights, converted from a
  folder of transformers, whose logits or states equal transformers' within 10^-6
  (\`bench/real/originals.ts\`). \`peer\`: random weights, against llama.cpp only. \`none\`: nothing but
  tests that the backends agree.
- T5 reads a prompt with an encoder: [api.md](api.md#encoder-decoder-models).
- Whisper transcribes speech and nothing else: [api.md](api.md#speech).
`;

function rowOf(arch: string, checked: Checked | undefined, kinds: ReadonlySet<string>): string[] {
  const family = FAMILIES[arch] ?? { name: arch };
  const also = family.also ? ` (${family.also.join(", ")})` : "";
  return [
    family.name,
    `\`${arch}\`${also}`,
    family.embeds === "only" ? "vectors" : family.embeds ? "both" : "text",
    family.calls ?? "",
    family.thinks ? "yes" : "",
    (family.sees ?? []).map((kind) => (kinds.has(kind) ? kind : `(${kind})`)).join(", "),
    checked ? backendsOf(checked) : [...(family.runs ?? []), "cpu"].join(", "),
    checked ? checkOf(checked) : "",
  ];
}

function proofOf(arch: string, checked: Checked | undefined, originals: ReadonlySet<string>): string {
  if (TRAINED.has(arch)) return "trained";
  if (originals.has(arch)) return "original";
  return checked ? "peer" : "none";
}

const backendsOf = ({ missing }: Checked): string =>
  [...BACKENDS.filter((name) => (missing[name] ?? []).length === 0), "cpu"].join(", ");

function checkOf({ references, nmse }: Checked): string {
  const twins = references.filter((name) => name.startsWith("twins/")).length;
  const counts = [count(references.length - twins, "model"), count(twins, "twin")].filter((text) => text !== "");
  return `${counts.join(" + ")}, ${nmse === 0 ? "0" : `10^${Math.ceil(Math.log10(nmse))}`}`;
}

const count = (n: number, what: string): string => (n === 0 ? "" : `${n} ${what}${n === 1 ? "" : "s"}`);
