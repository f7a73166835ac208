/**
 * Paths of images and recordings in a prompt: typed, quoted, or dropped on the terminal, which escapes blanks and
 * brackets. Existing files are sent, and their paths removed from the text; other paths stay text.
 */
import { stat, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { messageOf } from "../../base/index.ts";
import type { Terminal } from "../terminal/terminal.ts";

const BYTES_MAX = 100 * 2 ** 20;

const EXTENSIONS = {
  image: "jpe?g|png|webp|gif",
  recording: "wav|mp3|aac|flac|og[ag]|opus|webm|m4[ab]|mp4|mov",
} as const;
const EXTENSION = String.raw`\.(?:${Object.values(EXTENSIONS).join("|")})`;
/**
 * A quoted path; else from `/`, `./`, `../`, `~/` or a drive to a blank not escaped by `\`. No-break spaces belong to a
 * path: macOS names screenshots `… at 3.14.15\u202fPM.png`, and its terminal escapes only plain blanks.
 */
const PATHS = new RegExp(
  [
    `'([^'\\n]+${EXTENSION})'`,
    `"([^"\\n]+${EXTENSION})"`,
    String.raw`(?<=^|\s)((?:[a-z]:[\\/]|~?/|~\\|\.{1,2}[\\/])(?:\\[^\n]|[^\s\\]|[\xa0\u202f])*?${EXTENSION})(?=$|[\s,.;:!?)])`,
  ].join("|"),
  "gi",
);
const IS_FILE = new RegExp(`${EXTENSION}$`, "i");
const IS_RECORDING = new RegExp(String.raw`\.(?:${EXTENSIONS.recording})$`, "i");

/** The files that a model takes. */
export interface Takes {
  readonly image: boolean;
  readonly recording: boolean;
}

const kindOf = (path: string): keyof Takes => (IS_RECORDING.test(path) ? "recording" : "image");

export interface TextAndImages {
  /** The remaining text. */
  readonly text: string;
  /** Base64 of each file. */
  readonly images: readonly string[];
}

/** Throws if an existing file cannot be read, or is larger than any server accepts. */
export async function readImages(text: string, takes: Takes, { note }: Pick<Terminal, "note">): Promise<TextAndImages> {
  const images: string[] = [];
  let left = "";
  let at = 0;
  for (const found of text.matchAll(PATHS)) {
    const named = found[1] ?? found[2] ?? found[3]!; // one of them matched
    const image = takes[kindOf(named)] ? await readImage(named, note) : undefined;
    if (image === undefined) continue;
    images.push(image);
    left += text.slice(at, found.index);
    at = found.index + found[0].length;
  }
  return {
    text: images.length === 0 ? text : (left + text.slice(at)).replace(/ {2,}/g, " ").trim(),
    images,
  };
}

/** Like `readImages`, for words of a command line: a word that is the path of such a file is replaced by the file. */
export async function readImageWords(
  words: readonly string[],
  takes: Takes,
  terminal: Pick<Terminal, "note">,
): Promise<TextAndImages> {
  const images: string[] = [];
  const texts: string[] = [];
  for (const word of words) {
    const isTaken = IS_FILE.test(word) && takes[kindOf(word)];
    const image = isTaken ? await readImage(word, terminal.note) : undefined;
    if (image !== undefined) images.push(image);
    else {
      const seen = await readImages(word, takes, terminal);
      images.push(...seen.images);
      texts.push(seen.text);
    }
  }
  return { text: texts.filter((part) => part !== "").join(" "), images };
}

/**
 * Warns that a model gets paths as text, because it does not read files of that kind, or because they do not exist.
 * @param words each may be a whole path
 */
export async function warnOfImages(
  words: readonly string[],
  { model, takes }: { readonly model: string; readonly takes: Takes },
  { note }: Pick<Terminal, "note">,
): Promise<void> {
  const named = words.flatMap((word) => {
    const inside = [...word.matchAll(PATHS)].map((found) => found[1] ?? found[2] ?? found[3]!); // one of them matched
    return inside.length === 0 && IS_FILE.test(word) ? [word] : inside;
  });
  const isFile = await Promise.all(named.map(async (path) => (await findFile(path)) !== undefined));
  const found = named.filter((_, at) => isFile[at]);
  const missing = named.filter((path, at) => !isFile[at] && takes[kindOf(path)] && looksLikePath(path, words));
  if (missing.length > 0) note(`Warning: there is no file ${listed(missing)}: '${model}' gets it as text`);
  for (const [kind, lack] of Object.entries({ image: "see images", recording: "hear recordings" } as const)) {
    const paths = found.filter((path) => kindOf(path) === kind && !takes[kindOf(path)]);
    if (paths.length > 0) note(`Warning: '${model}' cannot ${lack}: it gets ${listed(paths)} as text`);
  }
}

/** Prose may end with the name of a file, or quote one. */
const looksLikePath = (named: string, words: readonly string[]): boolean =>
  !/\s/.test(named) && (/[\\/]/.test(named) || words.includes(named));

/** The first of them: pasted code may name many. */
const listed = (paths: readonly string[]): string =>
  [...paths.slice(0, 5).map((path) => `'${path}'`), ...(paths.length > 5 ? ["…"] : [])].join(", ");

/** True if a line that looks like a command begins with the path of an image or a recording. */
export const beginsWithImage = (line: string): boolean => line.search(PATHS) === 0;

/** Base64 of a file; undefined if it does not exist. */
async function readImage(named: string, note: (line: string) => void): Promise<string | undefined> {
  const path = await findFile(named);
  if (path === undefined) return undefined;
  try {
    const { size } = await stat(path);
    if (size > BYTES_MAX) throw new Error(`expected at most ${BYTES_MAX / 2 ** 20} MiB, got ${size} bytes`);
    const bytes = await readFile(path);
    note(`Added ${kindOf(path)} '${path}'`);
    return bytes.toString("base64");
  } catch (error) {
    throw new Error(`${kindOf(path)} '${path}': ${messageOf(error)}`, { cause: error });
  }
}

/** Resolves a typed path: with `~`, or with a shell's escapes. */
const findFile = (named: string): Promise<string | undefined> =>
  firstFile([named, named.replace(/\\(.)/g, "$1")].map(expandHome));

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths)
    if (
      await stat(path).then(
        (found) => found.isFile(),
        () => false,
      )
    )
      return path;
  return undefined;
}

const expandHome = (path: string): string => path.replace(/^~(?=[\\/])/, homedir());
