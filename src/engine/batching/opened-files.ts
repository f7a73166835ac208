/** The files of a model while it is loaded: opened, read into memory where they are not, and watched for changes. */
import type { LoadOptions } from "../program/backend.ts";
import type { ByteSource, OpenSource } from "../formats/gguf/source.ts";

interface OpenedFiles {
  readonly open: OpenSource;
  /** Files that are not in memory are read before anything waits for their pages. */
  readAhead(options: Pick<LoadOptions, "onProgress" | "signal">): Promise<void>;
  /** What has happened to one of them since; undefined: nothing. */
  changed(): string | undefined;
}

/** @param onOpen is told of each */
export function makeOpenedFiles(open: OpenSource, onOpen?: (source: ByteSource) => void): OpenedFiles {
  const sources: ByteSource[] = [];
  return {
    open(path) {
      const source = open(path);
      sources.push(source);
      onOpen?.(source);
      return source;
    },
    async readAhead({ onProgress, signal }) {
      for (const [i, source] of sources.entries()) {
        const progress = (fraction: number): void => onProgress?.((i + fraction) / sources.length);
        await source.readAhead?.({ onProgress: progress, signal });
      }
    },
    changed() {
      for (const source of sources) {
        const what = source.changed?.();
        if (what) return what;
      }
      return undefined;
    },
  };
}
