/**
 * The section `channels` of the configuration. Each platform brings the schema of its own settings; this file knows
 * what they share.
 */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { AppError } from "../base/errors.ts";

/** Settings that every platform has, for a platform's own `z.strictObject({ ...channelSettings, … })`. */
export const channelSettings = {
  enabled: z.boolean().default(true),
  /** Where texts go when nobody says where. */
  defaultTo: z.string().min(1).optional(),
  /** Another server than the platform's own. */
  baseUrl: z.url({ protocol: /^https?$/ }).optional(),
  /** Characters of one message, below the platform's limit. */
  textChunkLimit: z.int().min(50).max(40_000).optional(),
  /** Least milliseconds between two messages to one recipient. */
  spacingMs: z.int().min(0).max(60_000).optional(),
};

const SECRET = /^[\x21-\x7e]{1,4096}$/; // what a header can hold

/** A token: an environment variable is already put in by `${NAME}`. */
export const secret = z.string().trim().regex(SECRET, "expected visible ASCII characters without blanks");
/** A file whose only content is a token; relative to the folder of the configuration file. */
export const secretFile = z.string().min(1);

/** For `.refine(…)`: a token is given in one of two settings. */
export const oneOf = <K extends string>(value: K, file: K) =>
  [
    (settings: Partial<Record<K, unknown>>): boolean =>
      (settings[value] === undefined) !== (settings[file] === undefined),
    `expected either ${value} or ${file}`,
  ] as const;

const SECRET_FILE_BYTES_MAX = 16_384; // a token is a line

/** The token itself, or what is in its file. Throws `bad_request` naming the file, never what is in it. */
export function readSecret(given: string | undefined, file: { path: string | undefined; folder: string }): string {
  if (given !== undefined) return given;
  const path = resolve(file.folder, file.path ?? "");
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > SECRET_FILE_BYTES_MAX) {
      throw new AppError("bad_request", `${path}: expected a token of at most ${SECRET_FILE_BYTES_MAX} bytes`);
    }
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError("bad_request", `${path}: cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  if (SECRET.test(text)) return text;
  throw new AppError("bad_request", `${path}: expected one token of visible ASCII characters without blanks`);
}

export const channelsSchema = z
  .looseObject({
    /** Modules that bring platforms: names of those shipped, or paths relative to the configuration file. */
    plugins: z.array(z.string().min(1)).max(32).default([]),
    /** Which configured platform `last` falls back to first. */
    order: z.array(z.string()).optional(),
  })
  .prefault({});
/** Platform sections are checked by their own schemas. */
export type ChannelsConfig = z.output<typeof channelsSchema>;
