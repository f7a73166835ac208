/** The input of a response as items with ids, as they are kept and listed. */
import { AppError, isObject, unexpected, type Fields } from "../../base/index.ts";
import { makeId } from "../http/random-id.ts";
import type { FindItem } from "./input.ts";

/** Prefixes of ids by type. */
const PREFIXES: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
};

/** @param input of a request that was accepted */
export function inputItems(input: unknown, find: FindItem): Fields[] {
  if (typeof input === "string") return [itemOf({ role: "user", content: input.toWellFormed() })];
  const items = Array.isArray(input) ? input.filter(isObject) : [];
  return items.map((item) => itemOf(item["type"] === "item_reference" ? (find(String(item["id"])) ?? item) : item));
}

function itemOf(item: Fields): Fields {
  const type = typeof item["type"] === "string" ? item["type"] : "message";
  const prefix = Object.hasOwn(PREFIXES, type) ? PREFIXES[type]! : "item";
  const id = typeof item["id"] === "string" ? item["id"] : makeId(prefix);
  if (type !== "message") return { ...item, id, type };
  const { content } = item;
  const partType = item["role"] === "assistant" ? "output_text" : "input_text";
  const parts = typeof content === "string" ? [{ type: partType, text: content }] : content;
  return { status: "completed", ...item, id, type, content: parts };
}

const PAGE_DEFAULT = 20;
const PAGE_MAX = 100;

/** A page of items, selected by the query's `after`, `limit` and `order`. Throws `bad_request`. */
export function pageOf(items: readonly Fields[], query: URLSearchParams): object {
  const order = query.get("order") ?? "desc";
  if (order !== "asc" && order !== "desc") throw unexpected("order", '"asc" or "desc"', order);
  const ordered = order === "asc" ? items : items.toReversed();
  const after = query.get("after");
  const at = after === null ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== null && at < 0) throw unexpected("after", "the id of an item in the list", after);
  const rest = ordered.slice(at + 1);
  const data = rest.slice(0, limitOf(query.get("limit")));
  return {
    object: "list",
    data,
    first_id: data.at(0)?.["id"] ?? null,
    last_id: data.at(-1)?.["id"] ?? null,
    has_more: data.length < rest.length,
  };
}

function limitOf(text: string | null): number {
  const limit = text === null ? PAGE_DEFAULT : Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= PAGE_MAX) return limit;
  throw new AppError(
    "bad_request",
    `limit: expected a whole number from 1 to ${PAGE_MAX}, got '${text!.slice(0, 40)}'`,
  );
}
