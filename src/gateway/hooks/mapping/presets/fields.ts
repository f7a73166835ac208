/** Reads an untrusted payload: a field that is absent, or of the wrong type, is empty. */
import { ownValue, shortened } from "../../../../base/index.ts";

const TEXT_CHARS_MAX = 2000;
const LIST_MAX = 20;

export interface Fields {
  /** Text on one line, numbers and booleans as text; the first path that has any. */
  text(...paths: readonly string[]): string;
  /** Verbatim text, for comparisons. */
  exact(path: string): string;
  /** Text with its line breaks. */
  long(path: string, charsMax?: number): string;
  has(path: string): boolean;
  /** One line per item, `- …`; for long lists, the first items and the number of omitted ones. */
  list(path: string, line: (item: Fields) => string): string;
  within(path: string): Fields;
}

export function fieldsOf(value: unknown): Fields {
  const at = (path: string): unknown => (path === "" ? value : ownValue(value, path.split(".")));
  return {
    text: (...paths) => {
      for (const path of paths) {
        const text = flat(scalar(at(path)));
        if (text !== "") return shortened(text, TEXT_CHARS_MAX);
      }
      return "";
    },
    exact: (path) => scalar(at(path)),
    long: (path, charsMax = TEXT_CHARS_MAX) => shortened(scalar(at(path)).trim(), charsMax),
    has: (path) => at(path) !== undefined && at(path) !== null && at(path) !== false,
    list: (path, line) => {
      const found = at(path);
      if (!Array.isArray(found)) return "";
      const shown = found.slice(0, LIST_MAX).map((item) => `- ${line(fieldsOf(item))}`);
      return [...shown, ...(found.length > LIST_MAX ? [`- and ${found.length - LIST_MAX} more`] : [])].join("\n");
    },
    within: (path) => fieldsOf(at(path)),
  };
}

/** JSON as text, for payloads without a preset's summary. */
export function jsonText(value: unknown, charsMax: number): string {
  try {
    return shortened(JSON.stringify(value, null, 2) ?? "", charsMax);
  } catch {
    return "(nested too deep to show)";
  }
}

const scalar = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";

const flat = (text: string): string => text.replace(/\s+/g, " ").trim();
