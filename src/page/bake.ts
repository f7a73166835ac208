/** For compiling Hearth into one file: a bundler plugin that embeds the built page. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BunPlugin } from "bun";
import { AppError } from "../base/index.ts";
import { pageFiles, webLlmFiles } from "./assets.ts";
import type { PageFiles } from "./prebuilt.ts";

/**
 * Builds the page and returns the plugin that embeds it, as a file that the program reads on first use.
 * @param folder for that file until the program is built
 */
export async function bakePage(folder: string): Promise<BunPlugin> {
  const withoutWebLlm = (error: unknown): PageFiles => {
    if (error instanceof AppError && error.code === "unsupported") return {}; // its package is optional
    throw error;
  };
  const files = { ...(await pageFiles()), ...(await webLlmFiles().catch(withoutWebLlm)) };
  const path = join(folder, "page.json.zst");
  writeFileSync(path, Bun.zstdCompressSync(JSON.stringify(files), { level: 12 }));
  return {
    name: "page",
    setup(build) {
      build.onLoad({ filter: /[\\/]src[\\/]page[\\/]prebuilt\.ts$/ }, () => ({
        contents: `import { readFileSync } from "node:fs";
          import page from ${JSON.stringify(path)} with { type: "file" };
          export const prebuilt = () => JSON.parse(Bun.zstdDecompressSync(readFileSync(page)).toString());`,
        loader: "js",
      }));
    },
  };
}
