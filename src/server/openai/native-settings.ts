/** Sampling settings under llama-server's names, as `/props` and the answers of `/completion` show them. */
import { DEFAULT_ORDER, SAMPLING_DEFAULTS, type Options } from "../../engine/index.ts";
import type { NativeFields } from "./native-completion.ts";

/**
 * @param options of the model and the request; the others have their defaults
 * @param body of the request
 */
export function nativeSettings(options: Options, body: NativeFields = {}): object {
  const all = { ...SAMPLING_DEFAULTS, ...options };
  return {
    seed: all.seed,
    temperature: all.temperature,
    dynatemp_range: all.dynatemp_range,
    dynatemp_exponent: all.dynatemp_exponent,
    top_k: all.top_k,
    top_p: all.top_p,
    min_p: all.min_p,
    top_n_sigma: all.top_n_sigma,
    xtc_probability: all.xtc_probability,
    xtc_threshold: all.xtc_threshold,
    typical_p: all.typical_p,
    repeat_last_n: all.repeat_last_n,
    repeat_penalty: all.repeat_penalty,
    presence_penalty: all.presence_penalty,
    frequency_penalty: all.frequency_penalty,
    dry_multiplier: all.dry_multiplier,
    dry_base: all.dry_base,
    dry_allowed_length: all.dry_allowed_length,
    dry_penalty_last_n: all.dry_penalty_last_n,
    dry_sequence_breakers: all.dry_sequence_breakers,
    mirostat: all.mirostat,
    mirostat_tau: all.mirostat_tau,
    mirostat_eta: all.mirostat_eta,
    stop: all.stop,
    max_tokens: all.num_predict,
    n_predict: all.num_predict,
    n_keep: all.num_keep,
    n_discard: 0,
    ignore_eos: all.ignore_eos,
    logit_bias: Object.entries(all.logit_bias).map(([id, bias]) => ({ bias, token: Number(id) })),
    min_keep: all.min_keep,
    samplers: all.samplers ?? DEFAULT_ORDER,
    grammar: body.grammar ?? "",
    stream: body.stream ?? false,
    n_probs: body.n_probs ?? 0,
    timings_per_token: body.timings_per_token ?? false,
    post_sampling_probs: body.post_sampling_probs ?? false,
    lora: body.lora ?? [],
  };
}
