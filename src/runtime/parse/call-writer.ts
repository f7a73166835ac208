/** The description of calls that a model opens by itself, and the expressions that formats build it from. */
import type { Rules } from "../../engine/index.ts";

export type Schema = Readonly<Record<string, unknown>>;

export interface CallableTool {
  readonly name: string;
  /** The schema of its arguments, which are an object. */
  readonly schema: Schema;
}

/** The texts that open a call, and the rest of the call. */
export interface OpenedCall {
  /** Texts that open a call; with `atStart`, only if nothing but other calls precedes them. */
  readonly opens: readonly string[];
  readonly atStart?: boolean;
  /** An expression for the rest of the call. */
  readonly rest: string;
  /** As in `CallGrammar`. */
  readonly end?: string;
}

interface JsonKeys {
  readonly name?: string;
  readonly arguments?: readonly string[];
  /** An expression for the text in front of the name. */
  readonly lead?: string;
}

/** Expressions of a grammar, in the library's notation. */
export interface CallWriter {
  readonly rules: Rules;
  /** Blanks between parts: none, one, or a line and its indent. */
  readonly ws: string;
  /** Each tool once. */
  readonly tools: readonly CallableTool[];
  text(text: string): string;
  define(expression: string): string;
  /** Alternatives, one per tool. */
  perTool(write: (tool: CallableTool) => string): string;
  /** One call, or several with a separator between them if a model may make several. */
  many(one: string, separator?: string): string;
  /** A call as one JSON object. */
  json(keys?: JsonKeys): string;
  /** The arguments of a tool as one JSON object. */
  args(tool: CallableTool): string;
  /** A value in JSON that fits a part of a tool's schema. */
  value(schema: Schema, tool: CallableTool): string;
  /** Any text up to the first of this text, and that. */
  upTo(text: string): string;
}
