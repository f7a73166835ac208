/** Fields that constrain the whole answer. */
import { t, type Static } from "elysia";

export const grammarFields = {
  /** GBNF. */
  grammar: t.Optional(t.String()),
  /** A regular expression that the whole answer matches. */
  regex: t.Optional(t.String()),
  /** Texts, one of which is the answer. */
  choice: t.Optional(t.Array(t.String())),
  json_schema: t.Optional(t.Record(t.String(), t.Unknown())),
  guided_grammar: t.Optional(t.String()),
  guided_regex: t.Optional(t.String()),
  guided_choice: t.Optional(t.Array(t.String())),
  guided_json: t.Optional(t.Record(t.String(), t.Unknown())),
  /** The same fields without `guided_`, and `json`. */
  structured_outputs: t.Optional(t.Record(t.String(), t.Unknown())),
};

const Fields = t.Object(grammarFields);
export type GrammarFields = Static<typeof Fields>;
