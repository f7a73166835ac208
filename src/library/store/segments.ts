/**
 * The folders and the file of a manifest: the parts of its name. Windows has no files by some names that models may
 * have; there, the character that it refuses is written as `%` and two digits, which no name contains.
 */
import { makeName, type ModelName } from "./name.ts";

/** A device, a registry's port, and a last dot: "Naming Files, Paths, and Namespaces" of Windows' documentation. */
const REFUSED = /^(?=(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[a-z]|:|\.$/gi;

/** Path segments of the manifest under `manifests/`. */
export function manifestSegments(
  { host, namespace, model, tag }: ModelName,
  platform: NodeJS.Platform = process.platform,
): readonly string[] {
  const parts = [host, namespace, model, tag];
  return platform === "win32" ? parts.map((part) => part.replace(REFUSED, escaped)) : parts;
}

/** The part of a name that a path segment stands for. */
export const partAt = (segment: string, platform: NodeJS.Platform = process.platform): string =>
  platform === "win32" ? segment.replace(/%(..)/g, unescaped) : segment;

/** The name whose manifest has these path segments. Throws `bad_request` if they belong to no name. */
export function nameAt(segments: readonly string[], platform: NodeJS.Platform = process.platform): ModelName {
  const [host = "", namespace = "", model = "", tag = ""] = segments.map((segment) => partAt(segment, platform));
  return makeName({ host, namespace, model, tag });
}

const escaped = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
const unescaped = (_: string, code: string): string => String.fromCharCode(parseInt(code, 16));
