/**
 * Image encoders in the files of text models, converted to the layout of llama.cpp's projector files: architecture
 * `clip`, keys under `clip.vision`, tensors `v.` and `mm.`. The layouts come from converters that wrote both parts into
 * one file (names and defaults: llama/compat of ollama, `handle_*_clip`). Each is recognised by its architecture, and
 * applies to the original file, before the repair of its text part.
 */
import { AppError } from "../../../../base/index.ts";
import type { MetadataValue } from "../gguf.ts";
import type { EditableHeader } from "./editable-header.ts";
import type { Repair } from "./repair.ts";
import { whisperEncoder } from "./whisper.ts";

type Keys = Readonly<Record<string, MetadataValue>>;

interface Layout {
  readonly family: string;
  readonly archs: readonly string[];
  /** `clip.projector_type` */
  readonly kind: string;
  /** Default values under `clip.`, if the file has no such key under `ARCH.vision`. */
  readonly defaults: Keys;
  /** Keys under `ARCH` with another name under `clip`. */
  readonly moved?: Readonly<Record<string, string>>;
  readonly names: readonly (readonly [from: RegExp, to: string])[];
  /** Runs before tensors are renamed. `key` reads under `ARCH`, `set` writes under `clip`. */
  readonly before?: (header: EditableHeader, set: (key: string, value: MetadataValue) => void) => void;
}

const HALVES = {
  "vision.image_mean": Float32Array.of(0.5, 0.5, 0.5),
  "vision.image_std": Float32Array.of(0.5, 0.5, 0.5),
};
/** Mean and deviation of CLIP's training images. */
const CLIP_COLOURS = {
  "vision.image_mean": Float32Array.of(0.48145466, 0.4578275, 0.40821073),
  "vision.image_std": Float32Array.of(0.26862954, 0.26130258, 0.27577711),
};
const EPS = { "vision.attention.layer_norm_epsilon": Math.fround(1e-6) };
/** Names of the kernels of two frames, which files count from 0. */
const FRAMES = [
  [/^v\.patch_embd_0\./, "v.patch_embd."],
  [/^v\.patch_embd_1\.weight$/, "v.patch_embd.weight.1"],
] as const;

const gemma3: Layout = {
  family: "Gemma 3",
  archs: ["gemma3"],
  kind: "gemma3",
  defaults: { ...HALVES, ...EPS, use_gelu: true },
  names: [
    [/^v\.patch_embedding\./, "v.patch_embd."],
    [/^v\.position_embedding\./, "v.position_embd."],
    [/^v\.post_layernorm\./, "v.post_ln."],
    [/\.layer_norm([12])\./, ".ln$1."],
    [/\.attn_output\./, ".attn_out."],
    [/\.mlp\.fc1\./, ".ffn_up."],
    [/\.mlp\.fc2\./, ".ffn_down."],
    [/^mm\.mm_/, "mm."],
  ],
};

/** Linear steps of a layer, in the order of their limits. */
const LIMITED = ["attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"];
const LAYERS_MAX = 256;
const LIMITS = ["input_min", "input_max", "output_min", "output_max"];

const gemma4: Layout = {
  family: "Gemma 4",
  archs: ["gemma4"],
  kind: "gemma4v",
  defaults: {
    "vision.image_mean": Float32Array.of(0, 0, 0),
    "vision.image_std": Float32Array.of(1, 1, 1),
    "vision.image_size": 224,
    ...EPS,
    use_gelu: true, // as the models were trained
  },
  names: [],
  before(header) {
    if (!header.hasTensor("v.clamp_data")) return;
    // Four limits per linear step of each layer, and four for the projection
    const [count = 0] = header.shape("v.clamp_data");
    const layers = header.number("vision.block_count");
    const linears = Math.floor(count / LIMITS.length);
    if (layers > LAYERS_MAX || linears > LIMITED.length * layers + 1) {
      const expected = `at most ${LAYERS_MAX} layers, and limits of their linears and the projection`;
      throw new AppError("bad_file", `${header.path}: expected ${expected}, got ${layers} and ${count} values`);
    }
    for (let i = 0; i < linears; i++) {
      const layer = Math.floor(i / LIMITED.length);
      const linear = layer < layers ? `v.blk.${layer}.${LIMITED[i % LIMITED.length]}` : "mm.input_projection";
      for (const [j, limit] of LIMITS.entries()) {
        header.view(`${linear}.${limit}`, "v.clamp_data", { shape: [1], first: i * LIMITS.length + j });
      }
    }
    header.hide(/^v\.clamp_data$/);
  },
};

/** Layers whose rows also go to the text model. */
const STACKED_MAX = 64;
/** Maximum number of patch kernels: one per colour and dimension. */
const KERNELS_MAX = 3 * 25_600;

const qwen3: Layout = {
  family: "Qwen 3 VL and 3.5",
  archs: ["qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe"],
  kind: "qwen3vl_merger",
  defaults: { ...HALVES, ...EPS, use_gelu: true },
  names: [
    [/^v\.pos_embed\./, "v.position_embd."],
    [/^v\.patch_embed\.bias$/, "v.patch_embd.bias"],
    [/^v\.merger\.norm\./, "v.post_ln."],
    [/^v\.merger\.linear_fc1\./, "mm.0."],
    [/^v\.merger\.linear_fc2\./, "mm.2."],
    [/\.mlp\.linear_fc1\./, ".ffn_up."],
    [/\.mlp\.linear_fc2\./, ".ffn_down."],
    [/^(v\.deepstack\.\d+)\.linear_fc/, "$1.fc"],
    [/\.norm([12])\./, ".ln$1."],
  ],
  before(header, set) {
    setInnerSize(header, set, "v.blk.0.mlp.linear_fc1.weight");
    const [, positions = 0] = header.hasTensor("v.pos_embed.weight") ? header.shape("v.pos_embed.weight") : [];
    if (!header.has("vision.image_size")) {
      set("vision.image_size", Math.max(1, Math.floor(Math.sqrt(positions))) * header.number("vision.patch_size"));
    }
    const stacked = (header.numbers("vision.deepstack_visual_indexes") ?? []).slice(0, STACKED_MAX);
    for (const [i, layer] of stacked.entries()) {
      header.rename(new RegExp(`^v\\.deepstack_merger\\.${i}\\.`), `v.deepstack.${layer}.`);
    }
    splitFrames(header);
  },
};

/** Divides a kernel over two frames, (side, side, 2, channel of each output), into one kernel per frame. */
function splitFrames(header: EditableHeader): void {
  const name = "v.patch_embed.weight";
  if (!header.hasTensor(name)) return;
  const [width = 1, height = 1, , kernels = 0] = header.shape(name);
  const channels = 3;
  if (kernels > KERNELS_MAX) return; // the reader of the kernels reports the missing tensor
  for (const [frame, to] of ["v.patch_embd.weight", "v.patch_embd.weight.1"].entries()) {
    const rows = Int32Array.from({ length: kernels }, (_, kernel) => 2 * kernel + frame);
    header.gather(to, name, { shape: [width, height, channels, kernels / channels], rows, count: 2 * kernels });
  }
  header.hide(/^v\.patch_embed\.weight$/);
}

const qwen25: Layout = {
  family: "Qwen 2.5 VL",
  archs: ["qwen25vl"],
  kind: "qwen2.5vl_merger",
  defaults: { ...CLIP_COLOURS, ...EPS, "vision.image_size": 560, use_silu: true },
  names: [[/^v\.merger\.ln_q\./, "v.post_ln."], [/^v\.merger\.mlp\.([02])\./, "mm.$1."], ...FRAMES],
  before(header, set) {
    setInnerSize(header, set, "v.blk.0.ffn_up.weight");
    const [first = 7] = header.numbers("vision.fullatt_block_indexes") ?? [];
    set("vision.n_wa_pattern", first + 1);
  },
};

const glmOcr: Layout = {
  family: "GLM-OCR",
  archs: ["glmocr"],
  kind: "glm4v",
  defaults: { ...CLIP_COLOURS, use_silu: true },
  moved: {
    "vision.intermediate_size": "vision.feed_forward_length",
    "vision.attention.layer_norm_rms_epsilon": "vision.attention.layer_norm_epsilon",
  },
  names: FRAMES,
};

/** Rows of queries and of keys. */
const ROWS_MAX = 65_536;

/** Token of Mistral 3's vocabularies. */
const ROW_END = { text: "[IMG_BREAK]", id: 12 };

const mistral3: Layout = {
  family: "Mistral 3",
  archs: ["mistral3"],
  kind: "pixtral",
  defaults: { ...CLIP_COLOURS, "vision.attention.layer_norm_epsilon": Math.fround(1e-5), use_silu: true },
  moved: { spatial_merge_size: "vision.spatial_merge_size" },
  names: [
    [/^v\.patch_conv\./, "v.patch_embd."],
    [/^v\.encoder_norm\./, "v.pre_ln."],
    [/^(v\..*)\.attn_output\./, "$1.attn_out."],
    [/^(v\..*)\.attn_norm\./, "$1.ln1."],
    [/^(v\..*)\.ffn_norm\./, "$1.ln2."],
    [/^mm\.linear_([12])\./, "mm.$1."],
    [/^mm\.patch_merger\.merging_layer\./, "mm.patch_merger."],
    [/^mm\.norm\./, "mm.input_norm."],
  ],
  before(header) {
    const heads = header.number("vision.attention.head_count");
    header.rename(/^(v\.blk\.\d+\.attn_[qk])\.weight$/, "$1.halves");
    for (const name of Array.from(header.parts.keys()).filter((each) => each.endsWith(".halves"))) {
      const shape = header.shape(name);
      const count = shape[1] ?? 0;
      if (count > ROWS_MAX || count % (2 * heads) !== 0) {
        const expected = `at most ${ROWS_MAX} rows, in halves of ${heads} heads`;
        throw new AppError("bad_file", `${header.path}: tensor '${name}': expected ${expected}, got ${count}`);
      }
      const rows = inPairs(count, heads);
      header.gather(name.replace(/halves$/, "weight"), name, { shape, rows, count: rows.length });
    }
    header.hide(/\.halves$/);
    addRowEnd(header);
  },
};

/**
 * Indexes of a head's rows, reordered so that rows which RoPE rotates together are neighbours; in the file they are
 * half a head apart.
 */
function inPairs(count: number, heads: number): Int32Array {
  const headDim = count / heads;
  const half = headDim / 2;
  return Int32Array.from({ length: count }, (_, row) => {
    const at = row % headDim;
    return row - at + (at % 2) * half + Math.floor(at / 2);
  });
}

/** The separator between an image's lines is a token of the text model. */
function addRowEnd(header: EditableHeader): void {
  if (!header.hasTensor("token_embd.weight")) return;
  const tokens = header.metadata.get("tokenizer.ggml.tokens");
  const found = Array.isArray(tokens) ? (tokens as readonly unknown[]).indexOf(ROW_END.text) : -1;
  const [dim = 0] = header.shape("token_embd.weight");
  const first = (found >= 0 ? found : ROW_END.id) * dim;
  header.view("v.token_embd.img_break", "token_embd.weight", { shape: [dim], first });
}

/** Factors are stored after their tanh. */
const mllama: Layout = {
  family: "Llama 3.2 Vision",
  archs: ["mllama"],
  kind: "mllama",
  defaults: { ...CLIP_COLOURS, use_gelu: true },
  names: [
    [/^(v\..*)\.attn_output\./, "$1.attn_out."],
    [/^(v\..*)\.attn_norm\./, "$1.ln1."],
    [/^(v\..*)\.ffn_norm\./, "$1.ln2."],
  ],
};

/** The width of the blocks' MLPs, which some files omit. */
function setInnerSize(header: EditableHeader, set: (key: string, value: MetadataValue) => void, name: string): void {
  if (header.has("vision.feed_forward_length") || !header.hasTensor(name)) return;
  set("vision.feed_forward_length", header.shape(name)[1] ?? 0);
}

function visionRepair({ family, archs, kind, defaults, moved = {}, names, before }: Layout): Repair {
  return {
    family,
    applies: (header) => archs.includes(header.arch) && header.has("vision.block_count") && header.hasTensor(/^v\./),
    apply(header) {
      const keys = new Map<string, MetadataValue>([["general.architecture", "clip"]]);
      const set = (key: string, value: MetadataValue): void => void keys.set(`clip.${key}`, value);
      for (const [key, value] of Object.entries(defaults)) set(key, value);
      const own = `${header.arch}.vision.`;
      for (const [key, value] of header.metadata)
        if (key.startsWith(own)) set(`vision.${key.slice(own.length)}`, value);
      for (const [from, to] of Object.entries(moved)) if (header.has(from)) set(to, header.get(from)!);
      set("has_vision_encoder", true);
      set("projector_type", kind);
      set("vision.projection_dim", header.number("embedding_length", 0));
      before?.(header, set);
      header.hide(/^(?!v\.|mm\.)|^mm\.a\./);
      for (const [from, to] of names) header.rename(from, to);
      header.metadata.clear();
      for (const [key, value] of keys) header.metadata.set(key, value);
    },
  };
}

const KIND_KEYS = ["clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type"];

/** A projector file. The first files of LLaVA do not name their kind. */
const projector: Repair = {
  family: "projectors",
  applies: (header) => header.arch === "clip",
  apply({ metadata }) {
    if (!KIND_KEYS.some((key) => metadata.has(key))) metadata.set("clip.projector_type", "mlp");
  },
};

/** The first match applies. */
export const VISION_REPAIRS: readonly Repair[] = [
  projector,
  whisperEncoder,
  ...[gemma3, gemma4, qwen3, qwen25, glmOcr, mistral3, mllama].map(visionRepair),
];
