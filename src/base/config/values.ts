/** Parsers from a setting's text to its value; undefined if invalid. */
import { isIPv6 } from "node:net";
import { homedir } from "node:os";
import { parseDuration } from "../duration.ts";

export const PORT_DEFAULT = 11434;

export interface Address {
  readonly hostname: string;
  readonly port: number;
}

/** `[http://]host[:port]`; a missing host is loopback, IPv6 is in brackets. Digits alone are a port. */
export function parseAddress(value: unknown): Address | undefined {
  const match = /^(http:\/\/)?(\[[0-9a-fA-F:.]+\]|[^:/\s[\]]*)(?::(\d{1,5}))?\/?$/.exec(String(value));
  if (!match || match[0] === "") return bareIpv6(value);
  if (/^\d{1,5}$/.test(match[0])) return undefined;
  const port = match[3] === undefined ? (match[1] ? 80 : PORT_DEFAULT) : Number(match[3]);
  if (port > 65535) return undefined;
  return { hostname: match[2]?.replace(/^\[|\]$/g, "") || "127.0.0.1", port };
}

function bareIpv6(value: unknown): Address | undefined {
  const text = String(value);
  return isIPv6(text) ? { hostname: text, port: PORT_DEFAULT } : undefined;
}

/** A path, with `~` at its beginning as the user's folder: no shell replaces it in files, nor in `--models=~/x`. */
export function parsePath(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "" || value.includes("\0")) return undefined;
  return value.replace(/^~(?=$|[\\/])/, () => homedir());
}

export function parseInteger(value: unknown, range: { min: number; max: number }): number | undefined {
  if (!/^\d{1,9}$/.test(String(value))) return undefined;
  const number = Number(value);
  return number >= range.min && number <= range.max ? number : undefined;
}

const BYTE_UNITS: Readonly<Record<string, number>> = {
  "": 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
  TIB: 2 ** 40,
};

/** Parses a size in bytes: `1000000`, `512MB`, `6.5 GiB`. */
export function parseBytes(value: unknown): number | undefined {
  const [, digits, unit = ""] = /^(\d{1,15}(?:\.\d{1,6})?) ?([KMGT]i?B)?$/i.exec(String(value)) ?? [];
  const bytes = Math.floor(Number(digits) * (BYTE_UNITS[unit.toUpperCase()] ?? NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

export function autoWhereZero(value: unknown): "auto" | undefined {
  return String(value) === "0" ? "auto" : undefined;
}

export function parseMs(value: unknown, adjust: (ms: number) => number | undefined): number | undefined {
  if (/^-?\d{1,12}(\.\d+)?$/.test(String(value))) return adjust(Number(value) * 1e3);
  if (typeof value !== "string") return undefined;
  const ns = parseDuration(value);
  return ns === undefined ? undefined : adjust(ns / 1e6); // the caller's message names the setting and its origin
}

export function parseList(value: unknown, accepts: (item: string) => boolean): readonly string[] | undefined {
  const items: unknown[] = Array.isArray(value) ? value : String(value).split(",");
  const texts = items.filter((item) => typeof item === "string").map((item) => item.trim());
  const kept = texts.filter((item) => item !== "");
  return texts.length === items.length && kept.every(accepts) ? kept : undefined;
}

export const isHostPattern = (pattern: string): boolean =>
  pattern === "*" || (/^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i.test(pattern) && pattern.length <= 253);

export function isOriginPattern(pattern: string): boolean {
  const stars = pattern.split("*").length - 1;
  if (stars > 0) return stars === 1;
  return /^(https?|chrome-extension|safari-extension|moz-extension|ms-browser-extension):\/\//.test(pattern);
}

export function parseBool(value: unknown): boolean | undefined {
  if (/^(1|2|t|true)$/i.test(String(value))) return true; // 2: "trace" in other programs
  return /^(0|f|false)$/i.test(String(value)) ? false : undefined;
}

/** An http(s) address without a trailing slash, query or password. */
export function parseWebAddress(value: unknown): string | undefined {
  const url = typeof value === "string" ? URL.parse(value) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.search + url.hash + url.username + url.password !== "")
    return undefined;
  return url.href.replace(/\/+$/, "");
}
