/**
 * Grammars of a request under the names that llama-server and vLLM gave them: `grammar` (GBNF), `regex`, `choice`, the
 * same with `guided_` before it, or inside `structured_outputs`; and a JSON schema as `json_schema` or `guided_json`.
 */
import { AppError, isObject, readFields } from "../../base/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import type { GrammarFields } from "../schema/grammar.ts";

type Wanted = Pick<GenerateRequest, "format" | "grammar">;

/**
 * The grammar or the format of a request. Throws `bad_request` for several of them.
 * @param other fields of the request: its format, and the number of tools that the model may call
 */
export function readGrammar(
  body: GrammarFields,
  other: { readonly format?: unknown; readonly toolCount?: number | undefined } = {},
): Wanted {
  const inner = body.structured_outputs === undefined ? {} : readFields(body.structured_outputs, "structured_outputs");
  const named = Object.entries({
    ...Object.fromEntries(NAMES.map((name) => [name, body[name]])),
    ...Object.fromEntries(INNER.map((name) => [`structured_outputs.${name}`, inner[name]])),
  }).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const [first, second] = named;
  if (!first) return {};
  const also = second?.[0] ?? (other.format === undefined ? undefined : "a format");
  if (also !== undefined) throw new AppError("bad_request", `${first[0]}: expected one grammar, got ${also} too`);
  if ((other.toolCount ?? 0) > 0) {
    throw new AppError(
      "bad_request",
      `${first[0]}: expected no tools together with it: a grammar describes the whole answer`,
    );
  }
  return wantedOf(...first);
}

const NAMES = [
  "grammar",
  "regex",
  "choice",
  "json_schema",
  "guided_grammar",
  "guided_regex",
  "guided_choice",
  "guided_json",
] as const;
const INNER = ["grammar", "regex", "choice", "json"] as const;

function wantedOf(name: string, value: unknown): Wanted {
  const kind = name.replace(/^(?:guided_|structured_outputs\.)/, "");
  const found = Array.isArray(value) ? "an array" : typeof value;
  if (kind === "json" || kind === "json_schema") {
    if (isObject(value)) return { format: value };
    throw new AppError("bad_request", `${name}: expected a JSON schema, got ${found}`);
  }
  if (kind === "choice") {
    if (Array.isArray(value) && value.every((each) => typeof each === "string")) {
      return { grammar: { kind: "choice", texts: value } };
    }
    throw new AppError("bad_request", `${name}: expected an array of texts, got ${found}`);
  }
  if (typeof value !== "string") throw new AppError("bad_request", `${name}: expected a text, got ${found}`);
  return { grammar: kind === "regex" ? { kind, pattern: value } : { kind: "gbnf", text: value } };
}
