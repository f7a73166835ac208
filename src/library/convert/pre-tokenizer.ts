/**
 * Maps a `tokenizer.json` to one of GGUF's named pre-tokenizers. Such files spell out their rule, GGUF names it. Rules
 * are compared as text and never executed, because a pattern from a file may not terminate. An unknown rule is refused,
 * because another rule would give other ids.
 */
import { AppError, isObject } from "../../base/index.ts";
import { describe, type JsonObject } from "./folder.ts";

const raw = String.raw;
const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const END = raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
const WORD = raw`[^\r\n\p{L}\p{N}]?\p{L}+`;
const SYMBOLS = raw` ?[^\s\p{L}\p{N}]+[\r\n]*`;
const UPPER = raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const LOWER = raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;
const cased = (end: string): string =>
  raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+${end}|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*${end}`;

const LLAMA3 = raw`${CONTRACTION}|${WORD}|\p{N}{1,3}|${SYMBOLS}|${END}`;
const GPT4O = raw`${cased(`${CONTRACTION}?`)}|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${END}`;
const TEKKEN = raw`${cased("")}|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${END}`;

/** Each rule: its stages, one per line in the form of `stagesOf`, and its name. */
const RULES: readonly { readonly stages: string; readonly ignoresMerges?: boolean; readonly name: string }[] = [
  { stages: `split ${LLAMA3}`, ignoresMerges: true, name: "llama-bpe" },
  { stages: `split ${LLAMA3}`, name: "dbrx" },
  { stages: raw`split ${CONTRACTION}|${WORD}|\p{N}|${SYMBOLS}|${END}`, name: "qwen2" },
  { stages: `split ${TEKKEN}`, name: "tekken" },
  { stages: `split ${GPT4O}`, name: "gpt-4o" },
  { stages: "gpt2", name: "gpt-2" },
  { stages: "digits\ngpt2", name: "smollm" },
  {
    stages: raw`split \p{N}{1,3}
split [一-龥぀-ゟ゠-ヿ]+
split [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_${"`"}{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|${END}`,
    name: "deepseek-v3",
  },
];

/** Throws `unsupported` naming the rule if GGUF has no name for it. */
export function preTokenizerName(json: JsonObject, label: string): string {
  const stages = stagesOf(json["pre_tokenizer"], label).join("\n");
  const model = json["model"];
  const ignoresMerges = isObject(model) && model["ignore_merges"] === true;
  const rules = RULES.filter((rule) => rule.stages === stages);
  const found = rules.find((rule) => (rule.ignoresMerges ?? false) === ignoresMerges) ?? rules[0];
  if (found) return found.name;
  throw new AppError("unsupported", `${label}: 'tokenizer.json': the pre-tokenizer is unknown: ${describe(stages)}`);
}

/** The stages in order, without the byte encoding, which all rules share. */
function stagesOf(stage: unknown, label: string, depth = 0): string[] {
  const refuse = (): AppError =>
    new AppError("unsupported", `${label}: 'tokenizer.json': unknown pre-tokenizer ${describe(stage)}`);
  if (stage === null || stage === undefined || !isObject(stage) || depth > 4) throw refuse();
  switch (stage["type"]) {
    case "Sequence": {
      const list = stage["pretokenizers"];
      if (!Array.isArray(list) || list.length > 16) throw refuse();
      return list.flatMap((part: unknown) => stagesOf(part, label, depth + 1));
    }
    case "Split": {
      const pattern = stage["pattern"];
      const regex = isObject(pattern) ? (pattern["Regex"] ?? pattern["String"]) : undefined;
      const cuts = stage["behavior"] === "Isolated" && stage["invert"] !== true;
      const keeps = stage["behavior"] === "Removed" && stage["invert"] === true; // the equivalent, inverted form
      if (typeof regex !== "string" || !(cuts || keeps)) throw refuse();
      return [`split ${regex}`];
    }
    case "Digits":
      if (stage["individual_digits"] !== true) throw refuse();
      return ["digits"];
    case "ByteLevel":
      if (stage["add_prefix_space"] === true) throw refuse();
      return stage["use_regex"] === false ? [] : ["gpt2"];
    default:
      throw refuse();
  }
}
