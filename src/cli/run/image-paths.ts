/**
 * Images that a person names in a prompt by their paths: typed, quoted, or dropped on the terminal, which escapes
 * blanks and brackets. Files that are there become images and leave the text; other paths stay text.
 */
import { stat, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { messageOf } from "../../base/index.ts";
import type { Terminal } from "../terminal.ts";

const BYTES_MAX = 100 * 2 ** 20;

const EXTENSION = String.raw`\.(?:jpe?g|png|webp|gif)`;
/** Anything between quotes; else from `/`, `./`, `../`, `~/` or a drive up to a blank that no `\` escapes. */
const PATHS = new RegExp(
  [
    `'([^'\\n]+${EXTENSION})'`,
    `"([^"\\n]+${EXTENSION})"`,
    String.raw`(?<=^|\s)((?:[a-z]:[\\/]|~?/|\.{1,2}[\\/])(?:\\[^\n]|[^\s\\])*?${EXTENSION})(?=$|[\s,.;:!?)])`,
  ].join("|"),
  "gi",
);
const IS_IMAGE = new RegExp(`${EXTENSION}$`, "i");

export interface Sight {
  /** What is left of the text. */
  readonly text: string;
  /** Base64 of each file. */
  readonly images: readonly string[];
}

/** Throws where a file is there and cannot be read, or is larger than any server takes. */
export async function readImages(text: string, { note }: Pick<Terminal, "note">): Promise<Sight> {
  const images: string[] = [];
  let left = "";
  let at = 0;
  for (const found of text.matchAll(PATHS)) {
    const named = found[1] ?? found[2] ?? found[3]!; // one of them matched
    const image = await readImage(named, note);
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

/** As `readImages`, of words of a command line: each that is the path of an image as a whole is one. */
export async function readImageWords(words: readonly string[], terminal: Pick<Terminal, "note">): Promise<Sight> {
  const images: string[] = [];
  const texts: string[] = [];
  for (const word of words) {
    const image = IS_IMAGE.test(word) ? await readImage(word, terminal.note) : undefined;
    if (image !== undefined) images.push(image);
    else {
      const seen = await readImages(word, terminal);
      images.push(...seen.images);
      texts.push(seen.text);
    }
  }
  return { text: texts.filter((part) => part !== "").join(" "), images };
}

/**
 * Warns where a model without vision is asked about images: their paths are text for it.
 * @param words each may be a path as a whole
 */
export async function warnOfImages(
  words: readonly string[],
  model: string,
  { note }: Pick<Terminal, "note">,
): Promise<void> {
  const named = words.flatMap((word) => {
    const inside = [...word.matchAll(PATHS)].map((found) => found[1] ?? found[2] ?? found[3]!); // one of them matched
    return inside.length === 0 && IS_IMAGE.test(word) ? [word] : inside;
  });
  const isFile = await Promise.all(named.map(async (path) => (await findFile(path)) !== undefined));
  const found = named.filter((_, at) => isFile[at]);
  if (found.length === 0) return;
  const paths = found.map((path) => `'${path}'`).join(", ");
  note(`Warning: '${model}' cannot see images: it gets ${paths} as text`);
}

/** Whether a line that begins as commands do begins with the path of an image. */
export const beginsWithImage = (line: string): boolean => line.search(PATHS) === 0;

/** Base64 of a file; undefined where there is none of that name. */
async function readImage(named: string, note: (line: string) => void): Promise<string | undefined> {
  const path = await findFile(named);
  if (path === undefined) return undefined;
  try {
    const { size } = await stat(path);
    if (size > BYTES_MAX) throw new Error(`expected at most ${BYTES_MAX / 2 ** 20} MiB, got ${size} bytes`);
    const bytes = await readFile(path);
    note(`Added image '${path}'`);
    return bytes.toString("base64");
  } catch (error) {
    throw new Error(`image '${path}': ${messageOf(error)}`, { cause: error });
  }
}

/** The path of a file as a person names it: with `~`, or with escapes of a shell. */
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

const expandHome = (path: string): string => path.replace(/^~(?=\/)/, homedir());
