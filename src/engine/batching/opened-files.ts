/** The files of a loaded model: opens them, reads them into memory if needed, and watches them for changes. */
import type { LoadOptions } from "../program/backend.ts";
import type { ByteSource, OpenSource } from "../formats/gguf/source.ts";

export interface OpenedFiles {
  readonly open: OpenSource;
  /** Opens a file that may never be read: it is watched for changes, but not read ahead. */
  readonly openAside: OpenSource;
  /** Reads files that are not in memory before their pages are needed. */
  readAhead(options: Pick<LoadOptions, "onProgress" | "signal">): Promise<void>;
  /** Moves files whose weights are read from the mapping into larger pages. Never throws. */
  moveToHugePages(): Promise<void>;
  /** Closes all of them, after a load that failed. */
  close(): void;
  /** Describes a change since the files were opened; undefined: unchanged. */
  changed(): string | undefined;
}

/** @param onOpen called for each file */
export function makeOpenedFiles(open: OpenSource, onOpen?: (source: ByteSource) => void): OpenedFiles {
  const sources: ByteSource[] = [];
  const aside: ByteSource[] = [];
  return {
    open(path) {
      const source = open(path);
      sources.push(source);
      onOpen?.(source);
      return source;
    },
    openAside(path) {
      const source = open(path);
      aside.push(source);
      return source;
    },
    async readAhead({ onProgress, signal }) {
      for (const [i, source] of sources.entries()) {
        const progress = (fraction: number): void => onProgress?.((i + fraction) / sources.length);
        await source.readAhead?.({ onProgress: progress, signal });
      }
    },
    async moveToHugePages() {
      for (const source of sources) await source.moveToHugePages?.();
    },
    close() {
      for (const source of [...sources, ...aside]) source.close();
    },
    changed() {
      for (const source of [...sources, ...aside]) {
        const what = source.changed?.();
        if (what) return what;
      }
      return undefined;
    },
  };
}
