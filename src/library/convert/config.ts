/**
 * Typed access to `config.json`. Every error names the folder, the key, the expected and the actual value. Bounds are
 * as loose as the loader's, which validates every hyperparameter again.
 */
import { AppError, isObject } from "../../base/index.ts";
import { describe, type JsonObject } from "./folder.ts";

/** Far above any published model; keeps sizes that are computed from a configuration exact. */
const COUNT_MAX = 2 ** 31 - 1;
const LIST_MAX = 65_536;
/** The loader's limit. */
const LAYERS_MAX = 512;

export interface Config {
  readonly label: string;
  /** The value under the key; null counts as missing. */
  find(key: string): unknown;
  /** A whole number, at least 1 or `min`. Required unless there is a fallback. */
  count(key: string, options?: { fallback?: number; min?: number; max?: number }): number;
  findCount(key: string): number | undefined;
  number(key: string, fallback?: number): number;
  findNumber(key: string): number | undefined;
  text(key: string, fallback?: string): string;
  flag(key: string, fallback: boolean): boolean;
  /** Numbers, or undefined. */
  findNumbers(key: string): number[] | undefined;
  /** A nested object, or undefined. */
  findPart(key: string): Config | undefined;
  /** The error that a value is wrong. */
  wrong(key: string, expected: string): AppError;
}

/** @param path of the object within its file, as in `rope_scaling.` */
export function configOf(json: JsonObject, label: string, path = ""): Config {
  const find = (key: string): unknown => (Object.hasOwn(json, key) ? (json[key] ?? undefined) : undefined);
  const wrong = (key: string, expected: string): AppError =>
    new AppError("bad_file", `${label}: '${path}${key}': expected ${expected}, got ${describe(find(key))}`);
  const findNumber = (key: string): number | undefined => {
    const value = find(key);
    if (value === undefined) return undefined;
    if (typeof value !== "number" || !Number.isFinite(value)) throw wrong(key, "a number");
    return value;
  };
  const findCount = (key: string, { min = 1, max = COUNT_MAX } = {}): number | undefined => {
    const value = findNumber(key);
    if (value === undefined) return undefined;
    if (!Number.isInteger(value) || value < min || value > max) {
      throw wrong(key, `a whole number of ${min} … ${max}`);
    }
    return value;
  };
  const must = <T>(key: string, value: T | undefined, expected: string): T => {
    if (value === undefined) throw wrong(key, expected);
    return value;
  };
  return {
    label,
    find,
    wrong,
    findNumber,
    findCount: (key) => findCount(key),
    count: (key, { fallback, ...bounds } = {}) => must(key, findCount(key, bounds) ?? fallback, "a whole number"),
    number: (key, fallback) => must(key, findNumber(key) ?? fallback, "a number"),
    text(key, fallback) {
      const value = find(key) ?? fallback;
      if (typeof value !== "string") throw wrong(key, "text");
      return value;
    },
    flag(key, fallback) {
      const value = find(key) ?? fallback;
      if (typeof value !== "boolean") throw wrong(key, "true or false");
      return value;
    },
    findNumbers(key) {
      const value = find(key);
      if (value === undefined) return undefined;
      const isList = Array.isArray(value) && value.length <= LIST_MAX;
      if (!isList || !value.every((item) => typeof item === "number" && Number.isFinite(item))) {
        throw wrong(key, `a list of at most ${LIST_MAX} numbers`);
      }
      return value as number[]; // each was checked above
    },
    findPart(key) {
      const value = find(key);
      if (value === undefined) return undefined;
      if (!isObject(value)) throw wrong(key, "an object");
      return configOf(value, label, `${path}${key}.`);
    },
  };
}

/** The number of layers from a list of their kinds; undefined if the configuration has the number itself. */
function countedKinds(config: Config): number | undefined {
  const kinds = config.find("num_hidden_layers") === undefined ? config.find("layers_block_type") : undefined;
  return Array.isArray(kinds) && kinds.length > 0 && kinds.length <= LAYERS_MAX ? kinds.length : undefined;
}

/** The first of several names that a configuration has: families name the same size differently. */
export const nameOf = (config: Config, ...names: readonly [string, ...string[]]): string =>
  names.find((name) => config.find(name) !== undefined) ?? names[0];

export const layersOf = (config: Config): number =>
  countedKinds(config) ??
  config.count(nameOf(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"), {
    max: LAYERS_MAX,
  });
