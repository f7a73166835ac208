/** Small audio encoders, made in code from seeded random numbers, and recordings for them. */
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { WriteModel, WriteTensor, WriteValue } from "../../../src/engine/formats/files/write.ts";
import { floatToHalf } from "../../../src/engine/formats/half.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { makeProjector, TEXT_DIM } from "../vision/vision-model.ts";
import { gaussian } from "../../conformance/weights.ts";

const DIM = 32;
const FFN_DIM = 48;
const LAYERS = 2;
const HEADS = 2;
/** The text model's width. */
export const HEARD_DIM = 8;

/** Seconds of each recording: less than a piece, and more than one. */
export const RECORDINGS = { short: 1.3, long: 31.7 } as const;
/** Kinds that hear pieces in one way: one of them is tried with the long recording. */
const ALIKE: ReadonlySet<string> = new Set(["ultravox", "voxtral"]);
export const recordingsOf = (kind: AudioEncoderKind): [name: string, seconds: number][] =>
  Object.entries(RECORDINGS).filter(([name]) => name === "short" || !ALIKE.has(kind));

/** A few voices that rise and fall, and noise. */
export function recordingOf(seconds: number): Float32Array<ArrayBuffer> {
  const rng = makeRng(Math.round(seconds * 1000));
  const voices = Array.from({ length: 4 }, () => ({ pitch: 80 + 1500 * rng.float(), beat: 0.3 + 3 * rng.float() }));
  return Float32Array.from({ length: Math.round(seconds * 16_000) }, (_, i) => {
    const t = i / 16_000;
    const tone = (sum: number, { pitch, beat }: { pitch: number; beat: number }): number =>
      sum + Math.sin(2 * Math.PI * pitch * t + 2 * Math.sin(beat * t)) * (0.5 + 0.5 * Math.sin(2 * Math.PI * beat * t));
    return 0.6 * voices.reduce(tone, 0) + 0.02 * (rng.float() - 0.5);
  });
}

/** Collects tensors of random numbers. */
export function makeTensors() {
  const rng = makeRng(35);
  const tensors: WriteTensor[] = [];
  const values = (count: number, { mean = 0, size = 0.2 } = {}): Float32Array<ArrayBuffer> =>
    Float32Array.from({ length: count }, () => mean + size * gaussian(rng));
  const countOf = (shape: readonly number[]): number => shape.reduce((product, each) => product * each, 1);
  const add = (name: string, shape: readonly number[], options?: { mean?: number; size?: number }): void =>
    void tensors.push({ name, shape, quant: quants.f32, data: new Uint8Array(values(countOf(shape), options).buffer) });
  /** A convolution's kernel in half precision, as in files, and its bias. */
  const conv = (name: string, shape: readonly number[], bias: readonly number[]): void => {
    const count = countOf(shape);
    const size = 1 / Math.sqrt(count / shape.at(-1)!);
    const halves = Uint16Array.from(values(count, { size }), floatToHalf);
    tensors.push({ name: `${name}.weight`, shape, quant: quants.f16, data: new Uint8Array(halves.buffer) });
    if (bias.length > 0) add(`${name}.bias`, bias);
  };
  const norm = (name: string, dim: number): void => {
    add(`${name}.weight`, [dim], { mean: 1 });
    add(`${name}.bias`, [dim]);
  };
  const scale = (name: string, dim: number): void => add(`${name}.weight`, [dim], { mean: 1 });
  const matrix = (name: string, from: number, to: number): void =>
    add(`${name}.weight`, [from, to], { size: 1 / Math.sqrt(from) });
  const linear = (name: string, from: number, to: number): void => {
    matrix(name, from, to);
    add(`${name}.bias`, [to]);
  };
  return { tensors, add, conv, norm, scale, matrix, linear };
}
type Made = ReturnType<typeof makeTensors>;

/** A WAV file of one channel and 16 bits. */
export const wav = (seconds: number): Buffer => wavOf(recordingOf(seconds));
export const silence = (seconds: number): Buffer => wavOf(new Float32Array(seconds * 16_000));

function wavOf(samples: Float32Array): Buffer {
  const file = Buffer.alloc(44 + 2 * samples.length);
  file.write("RIFF", 0, "latin1");
  file.writeUInt32LE(file.length - 8, 4);
  file.write("WAVEfmt ", 8, "latin1");
  for (const [i, half] of [16, 0, 1, 1, 16_000, 0, 32_000, 0, 2, 16].entries()) file.writeUInt16LE(half, 16 + 2 * i);
  file.write("data", 36, "latin1");
  file.writeUInt32LE(2 * samples.length, 40);
  for (const [i, sample] of samples.entries()) {
    file.writeInt16LE(Math.round(32_767 * Math.max(-1, Math.min(1, sample))), 44 + 2 * i);
  }
  return file;
}

/** The image encoder of test/engine/vision/vision-model.ts with Gemma 4's way to hear in the same file. */
export function makeListener(): WriteModel {
  const { metadata, tensors } = makeProjector();
  const made = makeTensors();
  made.matrix("mm.a.input_projection", 640, TEXT_DIM);
  const { "clip.projector_type": sees, ...rest } = metadata;
  const listening = makeAudioEncoder("gemma4ua").metadata;
  const audio = Object.entries(listening).filter(([key]) => /^clip\.(audio\.|has_audio)/.test(key));
  return {
    metadata: {
      ...rest,
      ...Object.fromEntries(audio),
      "clip.vision.projector_type": sees!,
      "clip.audio.projector_type": "gemma4ua",
    },
    tensors: [...tensors, ...made.tensors],
  };
}

export type AudioEncoderKind = keyof typeof MAKERS;

const WHISPER = { bins: 80, positions: 1500 };

/** Whisper's encoder. */
function whisper(made: Made): void {
  made.conv("a.conv1d.1", [3, WHISPER.bins, DIM], [1, DIM]);
  made.conv("a.conv1d.2", [3, DIM, DIM], [1, DIM]);
  made.add("a.position_embd.weight", [DIM, WHISPER.positions]);
  transformer(made);
}

function transformer({ norm, linear, matrix }: Made): void {
  for (let layer = 0; layer < LAYERS; layer++) {
    const blk = `a.blk.${layer}`;
    for (const name of ["ln1", "ln2"]) norm(`${blk}.${name}`, DIM);
    for (const name of ["q", "v", "out"]) linear(`${blk}.attn_${name}`, DIM, DIM);
    matrix(`${blk}.attn_k`, DIM, DIM);
    linear(`${blk}.ffn_up`, DIM, FFN_DIM);
    linear(`${blk}.ffn_down`, FFN_DIM, DIM);
  }
  norm("a.post_ln", DIM);
}

/** The tensors and keys of each kind. */
const MAKERS = {
  qwen2a: (made: Made) => {
    whisper(made);
    made.linear("mm.a.fc", DIM, HEARD_DIM);
    return { "clip.audio.num_mel_bins": { u32: WHISPER.bins } };
  },
  ultravox: (made: Made) => {
    whisper(made);
    made.scale("mm.a.norm_pre", 8 * DIM);
    made.matrix("mm.a.mlp.1", 8 * DIM, 2 * FFN_DIM);
    made.scale("mm.a.norm_mid", FFN_DIM);
    made.matrix("mm.a.mlp.2", FFN_DIM, HEARD_DIM);
    return { "clip.audio.num_mel_bins": { u32: WHISPER.bins }, "clip.audio.projector.stack_factor": { u32: 8 } };
  },
  voxtral: (made: Made) => {
    whisper(made);
    made.matrix("mm.a.mlp.1", 4 * DIM, FFN_DIM);
    made.matrix("mm.a.mlp.2", FFN_DIM, HEARD_DIM);
    return { "clip.audio.num_mel_bins": { u32: WHISPER.bins }, "clip.audio.projector.stack_factor": { u32: 4 } };
  },
  qwen3a: (made: Made) => {
    const channels = 6;
    for (const i of [1, 2, 3]) made.conv(`a.conv2d.${i}`, [3, 3, i === 1 ? 1 : channels, channels], [1, 1, channels]);
    made.matrix("a.conv_out", 16 * channels, DIM);
    made.add("a.position_embd.weight", [DIM, WHISPER.positions]);
    transformer(made);
    made.linear("mm.a.mlp.1", DIM, DIM);
    made.linear("mm.a.mlp.2", DIM, HEARD_DIM);
    return { "clip.audio.num_mel_bins": { u32: 128 } };
  },
  gemma4a: (made: Made) => {
    const [bins, channels, taps] = [32, 4, 5];
    const { add, matrix, scale } = made;
    for (const i of [0, 1]) {
      const from = i === 0 ? 1 : channels;
      add(`a.conv1d.${i}.weight`, [3, 3, from, channels], { size: 1 / Math.sqrt(9 * from) });
      scale(`a.conv1d.${i}.norm`, channels);
    }
    matrix("a.input_projection", (bins / 4) * channels, DIM);
    for (let layer = 0; layer < LAYERS; layer++) {
      const blk = `a.blk.${layer}`;
      for (const suffix of ["", "_1"]) {
        scale(`${blk}.ffn_norm${suffix}`, DIM);
        matrix(`${blk}.ffn_up${suffix}`, DIM, FFN_DIM);
        matrix(`${blk}.ffn_down${suffix}`, FFN_DIM, DIM);
        scale(`${blk}.ffn_post_norm${suffix}`, DIM);
      }
      for (const name of ["attn_pre_norm", "attn_post_norm", "conv_norm", "norm_conv", "ln2"])
        scale(`${blk}.${name}`, DIM);
      for (const name of ["q", "v", "out", "k_rel"]) matrix(`${blk}.attn_${name}`, DIM, DIM);
      add(`${blk}.attn_k.weight`, [DIM, DIM], { size: 0.7 }); // scores large enough for their limit
      scale(`${blk}.per_dim_scale`, DIM / HEADS);
      matrix(`${blk}.conv_pw1`, DIM, 2 * DIM);
      add(`${blk}.conv_dw.weight`, [taps, DIM], { size: 0.5 });
      matrix(`${blk}.conv_pw2`, DIM, DIM);
      for (const side of ["input", "output"]) {
        add(`${blk}.attn_q.${side}_min`, [1], { mean: -2, size: 0 });
        add(`${blk}.attn_q.${side}_max`, [1], { mean: 2, size: 0 });
      }
    }
    made.linear("a.pre_encode.out", DIM, DIM);
    matrix("mm.a.input_projection", DIM, HEARD_DIM);
    return { "clip.audio.num_mel_bins": { u32: bins } };
  },
  gemma4ua: (made: Made) => {
    made.matrix("mm.a.input_projection", 640, HEARD_DIM);
    return {
      "clip.audio.num_mel_bins": { u32: 128 },
      "clip.audio.embedding_length": { u32: 640 },
      "clip.audio.feed_forward_length": { u32: 0 },
      "clip.audio.block_count": { u32: 0 },
      "clip.audio.attention.head_count": { u32: 0 },
    };
  },
} satisfies Record<string, (made: Made) => Record<string, WriteValue>>;

export const KINDS = Object.keys(MAKERS) as AudioEncoderKind[];

export function makeAudioEncoder(kind: AudioEncoderKind): WriteModel {
  const made = makeTensors();
  const keys: Record<string, WriteValue> = MAKERS[kind](made);
  return {
    metadata: {
      "general.architecture": "clip",
      "clip.has_audio_encoder": true,
      "clip.projector_type": kind,
      "clip.audio.embedding_length": { u32: DIM },
      "clip.audio.feed_forward_length": { u32: FFN_DIM },
      "clip.audio.block_count": { u32: LAYERS },
      "clip.audio.projection_dim": { u32: HEARD_DIM },
      "clip.audio.attention.head_count": { u32: HEADS },
      "clip.audio.attention.layer_norm_epsilon": { f32: 1e-5 },
      ...keys,
    },
    tensors: made.tensors,
  };
}

/** The distance between two recorded frames of a spectrogram, and between two rows. */
export const EVERY = { frame: 61, row: 3 } as const;
