/** Finds files of a model that another file of it names. */
import { AppError, type NamedFile } from "../../../base/index.ts";

interface Folder {
  /** For messages. */
  readonly label: string;
  /** Paths by name; names of files in subfolders contain a `/`. */
  readonly files: ReadonlyMap<string, string>;
}

const SHOWN = 60;

/**
 * The path of a file that another file of the folder names. Throws `bad_file` if the name leads out of the folder, or
 * to a missing file.
 * @param by the file that names it; names are relative to its folder
 */
export function pathBeside({ label, files }: Folder, by: string, name: string): NamedFile {
  const place = by.includes("/") ? by.slice(0, by.lastIndexOf("/") + 1) : "";
  const isInside =
    !/^[\\/]|^[A-Za-z]:|[\0\\]/.test(name) && name.split("/").every((part) => !["", ".", ".."].includes(part));
  if (!isInside) {
    const shown = JSON.stringify(name).slice(0, SHOWN);
    throw new AppError("bad_file", `${label}: '${by}': expected names of files beside it, got ${shown}`);
  }
  const path = files.get(place + name);
  if (path === undefined) throw new AppError("bad_file", `${label}: expected a file '${place}${name}', got none`);
  return { name: place + name, path };
}
