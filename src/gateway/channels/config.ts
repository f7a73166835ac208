/**
 * The section `channels` of the configuration. Each platform has a schema of its settings; this file holds the
 * shared ones.
 */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { Type, type TObject, type TProperties } from "@sinclair/typebox";
import { AppError } from "../../base/index.ts";
import {
  httpUrl,
  type Output,
  type Parsed,
  readable,
  reader,
  type Reader,
  refined,
  strictObject,
} from "../../base/schema.ts";

/** Settings that every platform has. */
const channelSettings = {
  enabled: Type.Boolean({ default: true }),
  defaultTo: Type.Optional(Type.String({ minLength: 1 })),
  /** Replaces the platform's own server. */
  baseUrl: Type.Optional(httpUrl()),
  /** Characters of one message, up to the platform's limit. */
  textChunkLimit: Type.Optional(Type.Integer({ minimum: 50, maximum: 40_000 })),
  /** Minimum number of milliseconds between two messages to one recipient. */
  spacingMs: Type.Optional(Type.Integer({ minimum: 0, maximum: 60_000 })),
};

const SECRET = /^[\x21-\x7e]{1,4096}$/; // characters that a header can hold
const SECRET_EXPECTED = "visible ASCII characters without blanks";

/**
 * A token; `${NAME}` is already replaced by the environment variable.
 * @param bare strips a prefix that people copy with it
 */
export const secretOf = (bare: (text: string) => string) =>
  readable(Type.String(), (text) => {
    const value = bare(text.trim());
    return SECRET.test(value) ? { value } : { problem: `expected ${SECRET_EXPECTED}` };
  });
export const secret = secretOf((text) => text);
/** A file whose only content is a token; relative to the folder of the configuration file. */
export const secretFile = Type.String({ minLength: 1 });

/**
 * The section of a platform: the shared settings and its own.
 * @param either the two settings of which one gives a token
 */
export function channelSchema<P extends TProperties>(
  properties: P,
  either?: readonly [value: string & keyof P, file: string & keyof P],
): Reader<Output<TObject<Omit<typeof channelSettings, keyof P> & P>>> {
  const section = strictObject({ ...channelSettings, ...properties });
  const [value, file] = either ?? [];
  if (value === undefined || file === undefined) return reader(section) as never; // the result has the same keys
  return reader(
    refined(section, (settings) => {
      const given = settings as Readonly<Record<string, unknown>>;
      const isOne = (given[value] === undefined) !== (given[file] === undefined);
      return isOne ? undefined : `expected either ${value} or ${file}`;
    }),
  ) as never;
}

/** The section of a platform whose bots need only a token. */
export const botSchema = channelSchema({ botToken: Type.Optional(secret), tokenFile: Type.Optional(secretFile) }, [
  "botToken",
  "tokenFile",
]);

const SECRET_FILE_BYTES_MAX = 16_384; // a token is one line

/** The token itself, or the content of its file. Throws `bad_request` naming the file, never its content. */
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

export const channelsSchema = reader(
  Type.Object(
    {
      /** Modules that add platforms: names of shipped plugins, or paths relative to the configuration file. */
      plugins: Type.Array(Type.String({ minLength: 1 }), { maxItems: 32, default: [] }),
      /** The order in which `last` falls back to configured platforms. */
      order: Type.Optional(Type.Array(Type.String())),
    },
    { default: {} },
  ),
);
/** Platform sections are checked by their own schemas. */
export type ChannelsConfig = Parsed<typeof channelsSchema>;
