/**
 * Reads the messages of a tool server: its list of tools, and the result of a call. All of it is bounded and checked.
 */
import { type Fields, isObject } from "../../base/index.ts";

export const TOOLS_MAX = 256;
/** Maximum number of UTF-16 units of one call's result. */
const RESULT_CHARS_MAX = 32_000;
const DESCRIPTION_CHARS_MAX = 4000;
const SCHEMA_CHARS_MAX = 65_536;
const NAME = /^[\w./-]{1,128}$/;

export interface McpTool {
  readonly name: string;
  /** Empty if the server gives none. */
  readonly description: string;
  /** JSON Schema of the arguments, an object's. */
  readonly inputSchema: Fields;
  /** True if the server says that a repeated call has no further effect. */
  readonly isRepeatable: boolean;
}

export interface McpResult {
  /** Text of the result; other parts are named in brackets. */
  readonly text: string;
  /** True if the tool reports a failure. */
  readonly isError: boolean;
}

/** A tool of a list; a text is the reason why it cannot be used. */
export function readTool(value: unknown): McpTool | string {
  if (!isObject(value)) return "a tool is not an object";
  const { name, description, inputSchema, annotations } = value;
  if (typeof name !== "string" || !NAME.test(name)) {
    return "a tool's name is not 1 to 128 letters, digits, '_', '-', '.' and '/'";
  }
  if (!isObject(inputSchema) || inputSchema["type"] !== "object")
    return `the schema of '${name}' does not describe an object`;
  if (JSON.stringify(inputSchema).length > SCHEMA_CHARS_MAX) {
    return `the schema of '${name}' has more than ${SCHEMA_CHARS_MAX} characters`;
  }
  const about = typeof description === "string" ? description.toWellFormed() : "";
  const hints = isObject(annotations) ? annotations : {};
  const isRepeatable = hints["idempotentHint"] === true || hints["readOnlyHint"] === true;
  return { name, description: about.slice(0, DESCRIPTION_CHARS_MAX), inputSchema, isRepeatable };
}

export function readResult({ content, structuredContent, isError }: Fields): McpResult {
  const parts = Array.isArray(content) ? content.map(textOf) : [];
  const whole = parts.join("\n").toWellFormed();
  const text = whole === "" && structuredContent !== undefined ? JSON.stringify(structuredContent) : whole;
  const isLong = text.length > RESULT_CHARS_MAX;
  return { text: isLong ? `${text.slice(0, RESULT_CHARS_MAX)}… (cut)` : text, isError: isError === true };
}

function textOf(part: unknown): string {
  if (!isObject(part)) return "";
  const { type, text, data, mimeType, uri, resource } = part;
  if (type === "text") return typeof text === "string" ? text : "";
  if (type === "resource" && isObject(resource)) {
    return typeof resource["text"] === "string" ? resource["text"] : `[resource ${oneWord(resource["uri"])}]`;
  }
  if (type === "resource_link") return `[resource ${oneWord(uri)}]`;
  const size = typeof data === "string" ? `, ${data.length} characters of base64` : "";
  return `[${oneWord(type)} ${oneWord(mimeType)}${size}: left out]`;
}

const oneWord = (value: unknown): string => (typeof value === "string" ? value.slice(0, 200).replace(/\s+/g, " ") : "");
