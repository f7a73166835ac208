/**
 * Llama 4: three of four layers have RoPE, QK-norm and chunked attention; the fourth is global without RoPE and scales
 * queries by position. Experts read weighted inputs. Semantics: src/models/llama4.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, moe, sequentialBlock } from "./decoder.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

/** Defaults without GGUF keys. */
const PERIOD = 4;
const CHUNK = 8192;
const TEMPERATURE = { coef: 0.1, floorScale: 8192 };
/** Maverick has no QK-norm. */
const MAVERICK_EXPERTS = 128;

export function llama4(model: Model): Step[] {
  const { keys, eps, headDim, nExperts } = model;
  const { q, k } = buffersOf(model);
  const rope = ropeOf(model, { style: "norm" });
  // The family's small models: every layer is global and has RoPE
  const isPlain = keys.find("attention.sliding_window") === 0;
  const scale = keys.number("attention.scale", 0);
  // Marks the key as read: only the period decides which layers have windows
  keys.find("attention.sliding_window_pattern");
  const temperature = {
    coef: keys.number("attention.temperature_scale", 0) || TEMPERATURE.coef,
    floorScale: keys.number("attention.temperature_length", 0) || TEMPERATURE.floorScale,
    offset: 1,
  };
  const norms = [q, k].map((x) => ({ op: "bareRmsNorm", out: x, x, run: headDim, eps }) as const);
  const seesAll = (layer: number): boolean => !isPlain && (layer + 1) % PERIOD === 0;
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: attention(model, layer, {
          rope: seesAll(layer) ? undefined : rope,
          ...(scale !== 0 && { scale }),
          ...(!isPlain && !seesAll(layer) && { window: CHUNK, chunked: true }),
          queries: seesAll(layer)
            ? [{ op: "positionScale", x: q, ...temperature }]
            : nExperts === MAVERICK_EXPERTS
              ? []
              : norms,
        }),
        ffn: model.has(`blk.${layer}.ffn_gate_inp.weight`)
          ? moe(model, layer, { act: "silu", normalize: false, routing: { score: "sigmoid", weighInput: true } })
          : feedForward(model, layer, { act: "silu" }),
      }),
  });
}
