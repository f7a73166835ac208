/**
 * Splits text into words before BPE: one row per rule, with all `tokenizer.ggml.pre` names that use it. A rule's stages
 * run in order, each on the pieces of the previous one; text between the matches of a stage becomes a separate piece.
 * The patterns are llama.cpp's (`llm_tokenizer_bpe` in llama-vocab.cpp), even where it simplifies the model's own, so
 * that ids are equal.
 */
import { AppError } from "../../../base/index.ts";
import { afterThrees, betweenThrees, type Cut } from "./digit-groups.ts";
import { ASIAN, CASED_LETTERS, HAN } from "./letters.ts";

/**
 * A pattern in `v` syntax, where `\s` is Unicode's White_Space; or a function, for patterns that take quadratic time.
 */
type Stage = string | Cut;

export interface PreTokenizer {
  readonly names: readonly string[];
  readonly stages: readonly Stage[];
  /** True if a word that is a piece is not merged from its parts. */
  readonly ignoreMerges?: boolean;
  /** Default for adding BOS. */
  readonly addBos?: boolean;
  /**
   * True if pieces are text with `▁` for a space, not bytes in GPT-2's alphabet, and a run of line feeds is looked up
   * as a whole.
   */
  readonly escapesSpaces?: boolean;
}

const raw = String.raw;
const any = (...alternatives: string[]): string => alternatives.join("|");

const CONTRACTION = raw`(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`;
const WORD = raw`[^\r\n\p{L}\p{N}]?\p{L}+`;
const DIGIT = raw`\p{N}`;
const DIGITS_3 = raw`\p{N}{1,3}`;
const SYMBOLS = raw` ?[^\s\p{L}\p{N}]+[\r\n]*`;
const SYMBOLS_SLASH = raw` ?[^\s\p{L}\p{N}]+[\r\n\/]*`;
const LINES = raw`\s*[\r\n]+`;
const SPACES = raw`\s+(?!\S)|\s+`;
const LINE_OR_NOT = raw`[^\n]+|\n+`;

const GPT2 = any(raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+`, SPACES);
const LLAMA3 = any(CONTRACTION, WORD, DIGITS_3, SYMBOLS, LINES, SPACES);
const QWEN2 = any(CONTRACTION, WORD, DIGIT, SYMBOLS, LINES, SPACES);

/** A word: capitals, then small letters, at least one of the two. */
const cased = (upper: string, lower: string, end: string): string =>
  any(raw`[^\r\n\p{L}\p{N}]?${upper}*${lower}+${end}`, raw`[^\r\n\p{L}\p{N}]?${upper}+${lower}*${end}`);
// llama.cpp knows the case of ASCII letters only: all other letters count as both. For letters without case, one loop
// is equivalent.
const CASED = (end: string): string => cased(raw`[\p{L}--[a-z]]`, raw`[\p{L}--[A-Z]]`, end);
const CASED_MARKED = (end: string): string => cased(raw`[[\p{L}\p{M}]--[a-z]]`, raw`[[\p{L}\p{M}]--[A-Z]]`, end);
const CASELESS = (end: string): string => raw`[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+${end}`;

const CJK = raw`[[\u0800-\u9FA5\uAC00-\uD7FF]--\s]+`;
const HAN_KANA = raw`[\u4E00-\u9FA5\u3040-\u30FF]+`;
const HANGUL = raw`[\uAC00-\uD7A3\u3131-\u318E]+`;
const CJK_PUNCTUATION = raw`[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-\u303F\uFE30-\uFE4F]+`;
const BOPOMOFO = raw`[\u3105-\u312F]+`;
const NO_PUNCTUATION = raw` ?[^\(\s\|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C\)]+`;

const ASCII_SYMBOL = raw`[!-\/:-@\[-\x60\{-\x7E]`;
const WORD_MARKED = any(raw`${ASCII_SYMBOL}[A-Za-z]+`, raw`[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`);
const DEEPSEEK3 = any(WORD_MARKED, raw` ?[\p{P}\p{S}]+[\r\n]*`, LINES, SPACES);
const FALCON_SYMBOLS = raw`[\p{P}\$\+<=>\^\x7E\|\x60]+`;
const JAIS2_SPACES = [512, 256, 128, 64, 32, 16, 8, 4].map((count) => raw`\s{${count}}(?!\S)`).join("|");

/** All rules. Some entries cover several models whose original rules differ; llama.cpp does not distinguish them. */
export const PRE_TOKENIZERS: readonly PreTokenizer[] = [
  { names: ["default"], stages: [raw`[\p{P}\$\+<=>\^\x7E\|]+`, GPT2, raw`\p{N}+`, "[0-9][0-9][0-9]"] },
  {
    names: ["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"],
    stages: [LLAMA3],
    ignoreMerges: true,
    addBos: true,
  },
  { names: ["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"], stages: [LLAMA3] },
  {
    names: ["jais-2"],
    stages: [any(CONTRACTION, WORD, DIGITS_3, SYMBOLS, LINES, JAIS2_SPACES, raw`\s{1,2}(?!\S)|\s`)],
  },
  {
    names: ["deepseek-llm"],
    stages: [
      raw`[\r\n]`,
      raw`\s?[${CASED_LETTERS}]+`,
      raw`\s?[!-\/:-\x7E\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3001\u3002]+`,
      raw`(?<!\s)\s+$`, // begins at the first blank: otherwise the search for the end would restart at each blank
      CJK,
      raw`\p{N}+`,
    ],
  },
  { names: ["deepseek-coder"], stages: [raw`[\r\n]`, raw`\s?\p{L}+`, raw`\s?\p{P}+`, CJK, DIGIT] },
  { names: ["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"], stages: [DIGITS_3, HAN_KANA, DEEPSEEK3] },
  {
    names: ["spark2_5"],
    stages: [DIGITS_3, HAN_KANA, any(WORD_MARKED, raw` ?[\p{P}\p{S}]+|[\r\n]`, SPACES), DIGIT],
  },
  {
    names: ["youtu"],
    stages: [
      any(HANGUL, CJK_PUNCTUATION, BOPOMOFO, HAN_KANA),
      any(CASELESS(`${CONTRACTION}?`), DIGIT, SYMBOLS_SLASH, LINES, SPACES),
    ],
    ignoreMerges: true,
  },
  { names: ["falcon"], stages: [FALCON_SYMBOLS, GPT2, "[0-9][0-9][0-9]"] },
  {
    names: ["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"],
    stages: [DIGIT, GPT2],
  },
  {
    names: [
      "gpt-2",
      "mpt",
      "olmo",
      "jais",
      "trillion",
      "granite-docling",
      "phi-2",
      "jina-es",
      "jina-de",
      "jina-v2-es",
      "jina-v2-de",
      "jina-v1-en",
      "jina-v2-code",
      "roberta-bpe",
      "gigachat",
      "a.x-4.0",
      "mellum",
      "modern-bert",
      "exaone4",
    ],
    stages: [GPT2],
  },
  {
    names: ["qwen2", "stablelm2", "hunyuan", "solar-open", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "grok-2"],
    stages: [QWEN2],
  },
  {
    names: ["qwen35"],
    stages: [
      any(CONTRACTION, raw`[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+`, DIGIT, raw` ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*`, LINES, SPACES),
    ],
  },
  { names: ["poro-chat", "bloom", "gpt3-finnish"], stages: [NO_PUNCTUATION] },
  { names: ["viking"], stages: [NO_PUNCTUATION, DIGIT] },
  {
    names: ["tekken"],
    stages: [any(CASED(""), DIGIT, SYMBOLS_SLASH, LINES, SPACES)],
    ignoreMerges: true,
    addBos: true,
  },
  {
    names: ["chameleon"],
    stages: [
      "<sentinel:[0-9]+>",
      "IMGIMG[A-I]{1,4}Z",
      raw`[\t\n]|    |  `,
      DIGIT,
      raw`[\p{P}!-\/:-@\[-\x60\{-\x7E]`,
      GPT2,
    ],
    addBos: true,
  },
  {
    names: ["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
    stages: [any(CASED(`${CONTRACTION}?`), DIGITS_3, SYMBOLS_SLASH, LINES, SPACES)],
  },
  {
    names: ["granite-embed-multi-97m"],
    stages: [any(CASED_MARKED(`${CONTRACTION}?`), DIGITS_3, SYMBOLS_SLASH, LINES, SPACES)],
    ignoreMerges: true,
  },
  {
    names: ["tiny_aya", "cohere2moe"],
    stages: [afterThrees, any(CASELESS(`${CONTRACTION}?`), DIGITS_3, SYMBOLS_SLASH, LINES, SPACES)],
  },
  {
    names: ["kimi-k2"],
    stages: [
      any(
        raw`[${HAN}]+`,
        raw`[^\r\n\p{L}\p{N}]?[\p{L}--[${HAN}]]+${CONTRACTION}?`,
        any(DIGITS_3, SYMBOLS, LINES, SPACES),
      ),
    ],
  },
  { names: ["superbpe"], stages: [raw`\p{N}+`, betweenThrees] },
  {
    names: ["bailingmoe", "bailingmoe2", "llada-moe"],
    stages: [any(CONTRACTION, WORD, DIGIT, SYMBOLS, raw`\s*[\r\n]`, SPACES)],
  },
  { names: ["seed-coder"], stages: [any(CONTRACTION, WORD, DIGIT, raw` ?[^\s\p{L}\p{N}]+`, LINES, SPACES)] },
  { names: ["ufakzeka"], stages: [any(WORD, DIGIT, SYMBOLS, LINES, SPACES)] },
  { names: ["afmoe"], stages: [afterThrees, `[${ASIAN}]+`, DEEPSEEK3] },
  { names: ["laguna"], stages: [LINE_OR_NOT, QWEN2] },
  {
    names: ["exaone-moe"],
    stages: [
      any(
        CONTRACTION,
        raw`[^\r\n\p{L}\p{N}]?\p{L}[\p{L}\p{M}]*(?: \p{L}[\p{L}\p{M}]*)*`,
        any(DIGIT, raw` ?[^\s\p{L}\p{N}]+[\r\n\/]?`, raw`\s*[\r\n]`, SPACES),
      ),
    ],
  },
  {
    names: ["minicpm5"],
    stages: [DIGITS_3, any(CONTRACTION, WORD, raw`\p{N}+`, SYMBOLS, LINES, SPACES)],
    ignoreMerges: true,
  },
  { names: ["gemma4", "granite-embed-multi-311m"], stages: [LINE_OR_NOT], addBos: true, escapesSpaces: true },
  { names: ["sarvam-moe"], stages: [LINE_OR_NOT], escapesSpaces: true },
];

/** The rule that a file names. Throws `unsupported`, listing the known ones. */
export function findPreTokenizer(name: string): PreTokenizer {
  const found = PRE_TOKENIZERS.find(({ names }) => names.includes(name));
  if (found !== undefined) return found;
  const known = PRE_TOKENIZERS.flatMap(({ names }) => names).sort();
  throw new AppError(
    "unsupported",
    `metadata 'tokenizer.ggml.pre': expected a pre-tokenizer that is known (${known.join(", ")}), got '${name}'`,
  );
}

/** Makes the function that splits text into words by a rule. */
export function makeSplit({ stages }: PreTokenizer): (text: string) => string[] {
  const cutters = stages.map((stage) => (typeof stage === "string" ? cutByPattern(stage) : cutAt(stage)));
  return (text) => {
    let pieces = [text];
    for (const cutter of cutters) {
      const cut: string[] = [];
      for (const piece of pieces) cutter(piece, cut);
      pieces = cut;
    }
    return pieces;
  };
}

type Cutter = (piece: string, into: string[]) => void;

/** Splits a text into matches and the texts between them. */
function cutByPattern(source: string): Cutter {
  const unicode = source.replaceAll(raw`\s`, raw`\p{White_Space}`).replaceAll(raw`\S`, raw`\P{White_Space}`);
  const pattern = new RegExp(unicode, "gv");
  return (piece, into) => {
    const matches = piece.match(pattern);
    let matched = 0;
    if (matches !== null) for (const match of matches) matched += match.length;
    if (matches !== null && matched === piece.length) {
      for (const match of matches) into.push(match); // the usual case without gaps needs no positions
      return;
    }
    let start = 0;
    for (const { 0: match, index } of matches === null ? [] : piece.matchAll(pattern)) {
      if (index > start) into.push(piece.slice(start, index));
      into.push(match);
      start = index + match.length;
    }
    if (start < piece.length) into.push(piece.slice(start));
  };
}

function cutAt(cut: Cut): Cutter {
  return (piece, into) => {
    let start = 0;
    for (const at of cut(piece)) {
      if (at > start) into.push(piece.slice(start, at));
      start = at;
    }
    if (start < piece.length) into.push(piece.slice(start));
  };
}
