/**
 * Modelfiles: the text that describes a model (FROM, PARAMETER, TEMPLATE …), read and printed. Line based, values
 * optionally in quotes that may span lines, no escapes. Errors carry the line number. Unlike the parser that this
 * grammar comes from, format characters (joiners in emoji, no-break spaces) are kept.
 */
import { AppError } from "../base/errors.ts";
import type { StoredMessage } from "./store.ts";

const COMMANDS = [
  "from",
  "license",
  "template",
  "system",
  "adapter",
  "draft",
  "renderer",
  "parser",
  "parameter",
  "message",
  "requires",
] as const;
type Command = (typeof COMMANDS)[number];

export const MODELFILE_BYTES_MAX = 16 * 1024 * 1024; // licences and templates are tens of kilobytes

export type ParameterValue = number | boolean | string | readonly string[];

export interface Modelfile {
  /** Paths or model names: at least one. */
  readonly from: readonly string[];
  readonly adapters: readonly string[];
  readonly drafts: readonly string[];
  readonly template?: string;
  readonly system?: string;
  readonly renderer?: string;
  readonly parser?: string;
  readonly requires?: string;
  /** Typed by name; `stop` collects. */
  readonly parameters: Readonly<Record<string, ParameterValue>>;
  readonly messages: readonly StoredMessage[];
  readonly licenses: readonly string[];
}

const INTEGERS =
  "num_ctx num_batch num_gpu main_gpu num_thread num_keep seed num_predict top_k repeat_last_n mirostat draft_num_predict";
const FLOATS =
  "top_p min_p tfs_z typical_p temperature repeat_penalty presence_penalty frequency_penalty mirostat_tau mirostat_eta";
const BOOLS = "use_mmap use_mlock penalize_newline numa low_vram f16_kv logits_all vocab_only";

type ParseParameter = (text: string) => ParameterValue;

const rows = (names: string, parse: ParseParameter): [string, ParseParameter][] =>
  names.split(" ").map((name) => [name, parse]);

/** How the text of a PARAMETER becomes a value. */
const PARAMETERS: ReadonlyMap<string, ParseParameter> = new Map([
  ...rows(INTEGERS, parseInteger),
  ...rows(FLOATS, parseFloat64),
  ...rows(BOOLS, parseBool),
  ...rows("stop", (text) => [text]),
]);

interface Line {
  readonly command: Command;
  /** The name after PARAMETER, the role after MESSAGE. */
  readonly key: string;
  readonly value: string;
}

/** The text of a Modelfile: UTF-8, or UTF-16 where it starts with that byte order mark. */
export function decodeModelfile(bytes: Uint8Array): string {
  if (bytes.length > MODELFILE_BYTES_MAX) {
    throw new AppError("too_large", `Modelfile: expected at most ${MODELFILE_BYTES_MAX} bytes, got ${bytes.length}`);
  }
  const mark = bytes.length >= 2 ? (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0) : 0;
  return new TextDecoder(mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8").decode(bytes);
}

/** Throws `bad_request` with the line number. */
export function parseModelfile(text: string): Modelfile {
  const lines = scan(text);
  const all = (command: Command): string[] =>
    lines.filter((line) => line.command === command).map((line) => line.value);
  const last = (command: "template" | "system" | "renderer" | "parser" | "requires"): Record<string, string> => {
    const value = all(command).at(-1);
    return value === undefined ? {} : { [command]: value };
  };
  if (all("from").length === 0) throw new AppError("bad_request", "no FROM line");
  return {
    from: all("from"),
    adapters: all("adapter").slice(-1),
    drafts: all("draft"),
    ...last("template"),
    ...last("system"),
    ...last("renderer"),
    ...last("parser"),
    ...last("requires"),
    parameters: parametersOf(lines),
    messages: lines
      .filter((line) => line.command === "message")
      .map((line) => ({ role: line.key, content: line.value })),
    licenses: all("license"),
  };
}

/** The commands of a Modelfile as text that `parseModelfile` reads, in a fixed order. */
export function printModelfile(file: Modelfile): string {
  const parameters = Object.entries(file.parameters).sort(([a], [b]) => (a < b ? -1 : 1));
  const each = (command: string, values: readonly (string | undefined)[]): string[] =>
    values.filter((value) => value !== undefined).map((value) => `${command} ${quoted(value)}`);
  return [
    ...file.from.slice(0, 1).map((from) => `FROM ${from}`),
    ...each("ADAPTER", file.adapters),
    ...each("DRAFT", file.drafts),
    ...file.from.slice(1).map((from) => `FROM ${from}`),
    ...each("TEMPLATE", [file.template]),
    ...each("SYSTEM", [file.system]),
    ...each("RENDERER", [file.renderer]),
    ...each("PARSER", [file.parser]),
    ...each("REQUIRES", [file.requires]),
    ...parameters.flatMap(([name, value]) => each(`PARAMETER ${name}`, isList(value) ? value : [String(value)])),
    ...each("LICENSE", file.licenses),
    ...file.messages.map(({ role, content }) => `MESSAGE ${role} ${quoted(content)}`),
    "",
  ].join("\n");
}

/** Quotes only where a bare value would read differently: line breaks, or blanks at an end. */
function quoted(value: string): string {
  const needed = /[\r\n]/.test(value) || value !== value.trim() || value === "" || value.startsWith('"');
  if (!needed) return value;
  return value.includes('"') ? `"""${value}"""` : `"${value}"`;
}

function scan(text: string): Line[] {
  const lines: Line[] = [];
  const source = text.split(/\r\n|\r|\n/);
  for (let at = 0; at < source.length; at++) {
    const line = (source[at] ?? "").trimStart();
    if (line === "" || line.startsWith("#")) continue;
    const number = at + 1;
    const { word: name, rest } = cutWord(line);
    const command = COMMANDS.find((known) => known === name.toLowerCase());
    if (!command) throw new AppError("bad_request", `(line ${number}): command must be one of ${commandList()}`);
    const { key, value: first } = keyOf({ command, rest, number });
    const { value, lines: used } = readValue(first, { source, at });
    lines.push({ command, key, value });
    at += used;
  }
  return lines;
}

/** PARAMETER and MESSAGE take a word before the value. */
function keyOf(at: { command: Command; rest: string; number: number }): { key: string; value: string } {
  if (at.command !== "parameter" && at.command !== "message") return { key: "", value: at.rest };
  const { word, rest } = cutWord(at.rest);
  if (at.command === "message" && !["system", "user", "assistant"].includes(word)) {
    throw new AppError(
      "bad_request",
      `(line ${at.number}): message role must be one of "system", "user", or "assistant"`,
    );
  }
  if (at.command === "parameter" && !/^[A-Za-z0-9_]+$/.test(word)) {
    throw new AppError("bad_request", `(line ${at.number}): expected the name of a parameter, got '${word}'`);
  }
  return { key: word, value: rest };
}

/** A value, with the following lines where it opens a quote; `lines` says how many of those it took. */
function readValue(first: string, at: { source: string[]; at: number }): { value: string; lines: number } {
  let value = first.trim();
  if (value === "") throw new AppError("bad_request", `(line ${at.at + 1}): unexpected EOF`);
  const quote = value.startsWith('"""') ? '"""' : value.startsWith('"') ? '"' : undefined;
  if (quote === undefined) return { value: dropControls(value), lines: 0 };
  let lines = 0;
  value = first.trimStart();
  while (!closes(value, quote)) {
    lines++;
    const next = at.source[at.at + lines];
    if (next === undefined) {
      throw new AppError("bad_request", `(line ${at.at + 1}): unexpected EOF: the quote ${quote} is never closed`);
    }
    value += `\n${next}`;
  }
  const text = value.trimEnd();
  return { value: dropControls(text.slice(quote.length, text.length - quote.length)), lines };
}

function closes(value: string, quote: string): boolean {
  const text = value.trimEnd();
  return text.length >= 2 * quote.length && text.endsWith(quote);
}

/** Control characters other than tab and line feed have no meaning in any value. */
function dropControls(text: string): string {
  return text.replace(/[^\P{Cc}\t\n]/gu, "");
}

function cutWord(line: string): { word: string; rest: string } {
  const end = line.search(/[ \t]/);
  return end < 0 ? { word: line, rest: "" } : { word: line.slice(0, end), rest: line.slice(end).trimStart() };
}

function commandList(): string {
  const quotedNames = COMMANDS.map((name) => `"${name}"`);
  return `${quotedNames.slice(0, -1).join(", ")}, or ${quotedNames.at(-1)}`;
}

function parametersOf(lines: readonly Line[]): Record<string, ParameterValue> {
  const parameters: Record<string, ParameterValue> = {};
  for (const { command, key, value } of lines) {
    if (command !== "parameter") continue;
    const parse = PARAMETERS.get(key);
    if (!parse) throw new AppError("bad_request", `unknown parameter '${key}'`);
    const parsed = parse(value);
    const before = parameters[key];
    parameters[key] = isList(parsed) && isList(before) ? [...before, ...parsed] : parsed;
  }
  return parameters;
}

const isList = (value: ParameterValue | undefined): value is readonly string[] => Array.isArray(value);

function parseInteger(text: string): number {
  if (/^[-+]?\d{1,15}$/.test(text)) return Number(text);
  throw new AppError("bad_request", `invalid int value [${text}]`);
}

function parseFloat64(text: string): number {
  if (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) && Number.isFinite(Number(text))) return Number(text);
  throw new AppError("bad_request", `invalid float value [${text}]`);
}

function parseBool(text: string): boolean {
  if (/^(1|t|T|TRUE|true|True)$/.test(text)) return true;
  if (/^(0|f|F|FALSE|false|False)$/.test(text)) return false;
  throw new AppError("bad_request", `invalid bool value [${text}]`);
}
