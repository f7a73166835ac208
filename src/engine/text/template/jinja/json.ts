/**
 * The `tojson` filter of chat templates: Python's `json.dumps(value, ensure_ascii=False, …)` with its spaces after
 * commas and colons and its order of keys.
 */
import { type Budget, fail, floatText, type Key, type Value, typeName } from "./value.ts";

interface JsonStyle {
  /** Undefined: everything on one line. */
  readonly indent: string | undefined;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly ensureAscii: boolean;
  readonly sortKeys: boolean;
}

/** @throws AppError `bad_request` for values that JSON cannot hold */
export function toJson(value: Value, style: JsonStyle, budget: Budget): string {
  return write(value, style, budget, "\n");
}

function write(value: Value, style: JsonStyle, budget: Budget, newline: string): string {
  budget.spend(1);
  if (value === null) return "null";
  if (typeof value === "boolean" || typeof value === "number") return String(value);
  if (typeof value === "string") return writeText(value, style, budget);
  const inner = newline + (style.indent ?? "");
  switch (value.kind) {
    case "float":
      return Number.isFinite(value.value) ? floatText(value.value) : nonFinite(value.value);
    case "list":
    case "tuple":
      return wrap(
        "[]",
        value.items.map((item) => write(item, style, budget, inner)),
        style,
        newline,
        budget,
      );
    case "dict": {
      const entries = [...value.entries];
      if (style.sortKeys) entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
      const parts = entries.map(
        ([key, item]) =>
          writeText(keyText(key), style, budget) + style.keySeparator + write(item, style, budget, inner),
      );
      return wrap("{}", parts, style, newline, budget);
    }
    default:
      throw fail(`Object of type ${typeName(value)} is not JSON serializable`);
  }
}

function wrap(brackets: string, parts: string[], style: JsonStyle, newline: string, budget: Budget): string {
  if (parts.length === 0) return brackets;
  budget.make(
    parts.reduce((sum, part) => sum + part.length, parts.length * (newline.length + style.itemSeparator.length)),
  );
  if (style.indent === undefined) return brackets[0] + parts.join(style.itemSeparator) + brackets[1];
  const inner = newline + style.indent;
  return brackets[0] + inner + parts.join(style.itemSeparator + inner) + newline + brackets[1];
}

const nonFinite = (value: number): string => (Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");

function keyText(key: Key): string {
  if (key === null) return "null";
  return String(key);
}

function writeText(text: string, style: JsonStyle, budget: Budget): string {
  budget.make(text.length);
  const json = JSON.stringify(text);
  if (!style.ensureAscii) return json;
  return json.replace(/[\x7f-\uffff]/g, (c) =>
    c === "\x7f" ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
