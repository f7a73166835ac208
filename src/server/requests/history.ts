/**
 * Lets conversations continue that started with another provider. Content that models here cannot read is replaced by a
 * line, with a warning in the log. New messages of the user are stricter: an unreadable part of a known type is an
 * error, and so is a message with only unknown parts.
 */
import { AppError, type Logger, isObject, type Fields } from "../../base/index.ts";
import { fieldsOfPrefix } from "../../runtime/index.ts";
import type { ContentPart } from "../answers/content-parts.ts";
import { parseBody } from "../http/json.ts";

/** Types of dropped content, for the log. */
export type LeftOut = string[];

const SHOWN = 16;

export function warnLeftOut(log: Logger, { model, left }: { model: string; left: LeftOut }): void {
  if (left.length === 0) return;
  const what = [...new Set(left)].slice(0, SHOWN);
  log.warn("left out parts of a conversation that models here cannot read", { model, what });
}

const TYPE_LENGTH_MAX = 40;

/** A type, made safe for a line or the log. */
const nameOf = (type: unknown): string =>
  typeof type === "string" ? type.replace(/\W+/g, "_").slice(0, TYPE_LENGTH_MAX) : "part";

/** The line that replaces dropped content. */
const placeholder = (type: unknown): string => `[${nameOf(type)} left out]`;

interface Reading {
  /** Readers by type. They throw `bad_request`. */
  readonly readers: Readonly<Record<string, (part: Fields, path: string) => readonly ContentPart[]>>;
  /** The error for a type without a reader. */
  readonly unknown: (type: unknown, path: string) => AppError;
  /** True if it is a new message of the user. */
  readonly isNew: boolean;
  /** True if the message is a model's. It gets no replacement lines, which the model would imitate. */
  readonly isAnswer?: boolean;
  readonly left: LeftOut;
}

/** Reads the parts of one message. */
export class PartReader {
  readonly #reading: Reading;
  #problem: AppError | undefined;
  #isSaid = false;

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  /** Throws `bad_request` for a known type that cannot be read in a new message. */
  read(part: unknown, path: string): readonly ContentPart[] {
    const { readers, unknown, isNew, isAnswer, left } = this.#reading;
    const fields: Fields = typeof part === "string" ? { type: "text", text: part } : isObject(part) ? part : {};
    const { type, text } = fields;
    const reader = typeof type === "string" && Object.hasOwn(readers, type) ? readers[type] : undefined;
    try {
      if (!reader && typeof text !== "string") throw unknown(type, path);
      const parts = reader ? reader(fields, path) : [String(text).toWellFormed()];
      this.#isSaid ||= parts.some((each) => typeof each !== "string" || each.trim() !== "");
      return parts;
    } catch (error) {
      if (!(error instanceof AppError) || (isNew && reader)) throw error;
      this.#problem ??= error;
      left.push(nameOf(type));
      return isAnswer ? [] : [placeholder(type)];
    }
  }

  /** Throws `bad_request` if a new message has only parts that could not be read. */
  finish(): void {
    if (this.#reading.isNew && this.#problem && !this.#isSaid) throw this.#problem;
  }
}

/** Longer texts without white space are base64 or encrypted data. */
const WORD_LENGTH_MAX = 2048;

/** The result of another provider's tool, as text. */
export function toolResultText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return isData(value) ? placeholder("data") : value.toWellFormed();
  if (Array.isArray(value)) return value.map(toolResultText).join("\n");
  if (!isObject(value)) return String(value);
  const text = value["text"] ?? value["logs"];
  if (typeof text === "string") return text.toWellFormed();
  const shown = (_: string, each: unknown): unknown =>
    typeof each === "string" && isData(each) ? placeholder("data") : each;
  return JSON.stringify(value, shown).toWellFormed();
}

const isData = (text: string): boolean => text.length > WORD_LENGTH_MAX && !/\s/.test(text);

/** The key for arguments that are not a JSON object. */
const NO_JSON = "invalid_json";

/**
 * The arguments of a call in a conversation: an object, or its JSON as text. Partial JSON gives the fields so far, and
 * an absent or empty value gives no arguments.
 */
export function readArguments(value: unknown, left: LeftOut): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (isObject(value)) return { ...value };
  const text = typeof value === "string" ? value.toWellFormed() : JSON.stringify(value);
  if (text.trim() === "") return {};
  const whole = tryParse(text);
  if (isObject(whole)) return { ...whole };
  left.push("arguments that are not a JSON object");
  return fieldsOfPrefix(text) ?? { [NO_JSON]: text };
}

function tryParse(text: string): unknown {
  try {
    return parseBody(text);
  } catch {
    return undefined; // not JSON: the caller handles it
  }
}
