/** Sampling fields that the OpenAI dialects share. */
import { t } from "elysia";
import { grammarFields } from "./grammar.ts";
import { loraFields } from "./lora.ts";
import { Int } from "./message.ts";

export const samplingFields = {
  seed: t.Optional(Int),
  /** A text, or several. */
  stop: t.Optional(t.Unknown()),
  temperature: t.Optional(t.Number()),
  top_p: t.Optional(t.Number()),
  frequency_penalty: t.Optional(t.Number()),
  presence_penalty: t.Optional(t.Number()),
  /** Numbers by token id. */
  logit_bias: t.Optional(t.Unknown()),

  // not in the OpenAI API
  top_k: t.Optional(Int),
  min_p: t.Optional(t.Number()),
  repeat_penalty: t.Optional(t.Number()),
  typical_p: t.Optional(t.Number()),
  top_n_sigma: t.Optional(t.Number()),
  xtc_probability: t.Optional(t.Number()),
  xtc_threshold: t.Optional(t.Number()),
  dynatemp_range: t.Optional(t.Number()),
  dynatemp_exponent: t.Optional(t.Number()),
  dry_multiplier: t.Optional(t.Number()),
  dry_base: t.Optional(t.Number()),
  dry_allowed_length: t.Optional(Int),
  dry_penalty_last_n: t.Optional(Int),
  dry_sequence_breakers: t.Optional(t.Array(t.String())),
  min_keep: t.Optional(Int),
  /** Names of samplers in their order, or a text of their letters. */
  samplers: t.Optional(t.Unknown()),
  ignore_eos: t.Optional(t.Boolean()),
  num_ctx: t.Optional(Int),
  options: t.Optional(t.Record(t.String(), t.Unknown())),
  keep_alive: t.Optional(t.Unknown()),
  truncate: t.Optional(t.Boolean()),
  shift: t.Optional(t.Boolean()),
  ...grammarFields,
  ...loraFields,
};
