/**
 * Folders for files that ONNX Runtime opens. Elsewhere they go while it has their files mapped; on Windows a mapped
 * file cannot be removed: it stays until a later load finds it free.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PREFIX = "hearth-onnx-";
/** An older folder is not being filled any more. */
const FILLED_MS = 60 * 60 * 1000;

interface On {
  readonly platform?: NodeJS.Platform;
  /** Folder for temporary files. */
  readonly parent?: string;
  readonly nowMs?: number;
}

/** Makes an empty folder. */
export function makeFolder({ platform = process.platform, parent = tmpdir(), nowMs = Date.now() }: On = {}): string {
  if (platform === "win32") removeOld(parent, nowMs);
  return mkdtempSync(join(parent, PREFIX));
}

/** Removes a folder with all that is in it, as far as nothing has it mapped. */
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
