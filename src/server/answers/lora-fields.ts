/** The adapters that a request chooses: `lora: [{ id, scale }]`, or `name` in place of `id`. */
import { AppError } from "../../base/index.ts";
import type { AdapterScale, GenerateRequest } from "../../runtime/portable.ts";
import type { LoraList } from "../schema/lora.ts";

/** Entries of a list. */
const LENGTH_MAX = 64;

/** Throws `bad_request`. */
export const readLora = ({ lora }: { readonly lora?: LoraList }): Pick<GenerateRequest, "lora"> =>
  lora === undefined ? {} : { lora: readLoraList(lora, "lora") };

/**
 * Throws `bad_request` for an entry with both or neither of `id` and `name`, without a scale, or with an adapter that
 * was named before.
 */
export function readLoraList(list: LoraList, path: string): AdapterScale[] {
  if (list.length > LENGTH_MAX) {
    throw new AppError("bad_request", `${path}: expected at most ${LENGTH_MAX} adapters, got ${list.length}`);
  }
  return list.map(({ id, name, scale }, i) => {
    const at = `${path}[${i}]`;
    if ((id === undefined) === (name === undefined)) {
      throw new AppError(
        "bad_request",
        `${at}: expected an id or a name, got ${id === undefined ? "neither" : "both"}`,
      );
    }
    if (id !== undefined && !(Number.isSafeInteger(id) && id >= 0)) {
      throw new AppError("bad_request", `${at}.id: expected a number from /lora-adapters, got ${id}`);
    }
    if (scale === undefined) throw new AppError("bad_request", `${at}.scale: expected a number, got nothing`);
    return { adapter: id ?? name!, scale };
  });
}
