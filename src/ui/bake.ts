/** For whoever compiles Hearth into one file: a bundler's plugin that puts the built page inside. */
import type { BunPlugin } from "bun";
import { pageFiles } from "./assets.ts";

/** Builds the page and gives the plugin that takes it in. */
export async function bakePage(): Promise<BunPlugin> {
  const files = await pageFiles();
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
