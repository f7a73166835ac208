/**
 * Folders for files that ONNX Runtime opens. On other systems they can be deleted while mapped; on Windows a mapped
 * file cannot be removed and stays until a later load finds it unused.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PREFIX = "hearth-onnx-";
/** Older folders are no longer being filled. */
const FILLED_MS = 60 * 60 * 1000;

interface On {
  readonly platform?: NodeJS.Platform;
  /** Folder for temporary files. */
  readonly parent?: string;
  readonly nowMs?: number;
}

export function makeFolder({ platform = process.platform, parent = tmpdir(), nowMs = Date.now() }: On = {}): string {
  if (platform === "win32") removeOld(parent, nowMs);
  return mkdtempSync(join(parent, PREFIX));
}

/** Removes a folder with its content, except mapped files. */
export function removeFolder(path: string, { platform = process.platform }: On = {}): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    if (platform !== "win32") throw error;
  }
}

function removeOld(parent: string, nowMs: number): void {
  for (const name of readdirSync(parent).filter((each) => each.startsWith(PREFIX))) {
    const path = join(parent, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found && nowMs - found.mtimeMs > FILLED_MS) removeFolder(path, { platform: "win32" });
  }
}
