/** For whoever compiles Hearth into one file: a bundler's plugin that puts the built page inside. */
import type { BunPlugin } from "bun";
import { AppError } from "../base/errors.ts";
import { pageFiles, webLlmFiles } from "./assets.ts";
import type { PageFiles } from "./prebuilt.ts";

/** Builds the page and gives the plugin that takes it in. */
export async function bakePage(): Promise<BunPlugin> {
  const withoutWebLlm = (error: unknown): PageFiles => {
    if (error instanceof AppError && error.code === "unsupported") return {}; // its package is optional
    throw error;
  };
  const files = { ...(await pageFiles()), ...(await webLlmFiles().catch(withoutWebLlm)) };
  return {
    name: "page",
    setup(build) {
      build.onLoad({ filter: /[\\/]src[\\/]ui[\\/]prebuilt\.ts$/ }, () => ({
        contents: `export const prebuilt = ${JSON.stringify(files)};`,
        loader: "js",
      }));
    },
  };
}
