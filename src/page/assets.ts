/**
 * The files of the page, built from its sources on first use; a compiled program contains them (`prebuilt.ts`). File
 * names contain a hash of the content, so that browsers cache them for ever.
 */
import { join } from "node:path";
import { gzipSync } from "bun";
import { AppError } from "../base/index.ts";
import { packageFolder } from "../base/system.ts";
import { buildForBrowser, type BuiltScript } from "./engine/build.ts";
import { prebuilt, type Asset, type PageFiles } from "./prebuilt.ts";

export interface ServedAsset extends Asset {
  readonly etag: string;
  /** True if its name changes with its content. */
  readonly isImmutable: boolean;
  /** Compressed on first use. */
  readonly gzipped: () => Uint8Array<ArrayBuffer>;
}

const APP = join(import.meta.dir, "app");
/** Style sheets in the order of the cascade. */
const STYLES = [
  "base",
  "shell",
  "controls",
  "chat",
  "compare",
  "prompts",
  "models",
  "markdown",
  "views",
  "touch",
  "print",
] as const;
/** WebLLM's Worker, and its parts. */
const WEBLLM = "webllm.js";
const WEBLLM_PACKAGE = "@mlc-ai/web-llm";
const JAVASCRIPT = "text/javascript; charset=utf-8";

/** Shown until the page is loaded: its name in the colours of `base.css`. */
export const FIRST_STYLE =
  ":root{color-scheme:light dark;background:light-dark(#faf8f5,#171513);color:light-dark(#665d54,#aba197)}" +
  '#app:empty::before{content:"Hearth";position:fixed;inset:0;margin:auto;width:max-content;height:max-content;' +
  "font:650 17px system-ui,sans-serif}";

/** Finds a file of the page by name. Undefined: there is no such file. */
export type FindAsset = (name: string) => Promise<ServedAsset | undefined>;

/** Builds once, on first use; again after a failure. WebLLM's part is built only when it is requested. */
export function makeFindAsset(build = pageFiles, buildWebLlm = webLlmFiles): FindAsset {
  const [page, webLlm] = [servedOnce(build), servedOnce(buildWebLlm)];
  return async (name) => (await (name === WEBLLM ? webLlm : page)()).get(name);
}

function servedOnce(build: () => Promise<PageFiles>): () => Promise<ReadonlyMap<string, ServedAsset>> {
  let built: Promise<ReadonlyMap<string, ServedAsset>> | undefined;
  return () => {
    built ??= build().then(served);
    return built.catch((error: unknown) => {
      built = undefined;
      throw error;
    });
  };
}

/** The files of the page: a compiled program's, or built from the sources beside this file. */
export async function pageFiles(): Promise<PageFiles> {
  return prebuilt?.() ?? buildPage();
}

/** WebLLM's Worker. Throws `unsupported` if its optional package is not installed. */
export async function webLlmFiles(): Promise<PageFiles> {
  if (prebuilt) return prebuilt();
  checkInstalled(WEBLLM_PACKAGE);
  const { scripts } = await buildForBrowser(join(import.meta.dir, "./engine/webllm/worker-main.ts"));
  return { [WEBLLM]: { contentType: JAVASCRIPT, text: scripts[0]!.text } };
}

function checkInstalled(name: string): void {
  try {
    packageFolder(name);
  } catch (error) {
    const how = `install it beside Hearth (npm install ${name})`;
    throw new AppError("unsupported", `models that MLC compiled need the optional package '${name}': ${how}`, {
      cause: error,
    });
  }
}

async function buildPage(): Promise<PageFiles> {
  const [page, worker, files, style, icon] = await Promise.all([
    buildForBrowser(join(APP, "main.tsx")),
    buildForBrowser(),
    buildForBrowser(join(APP, "work/file-worker.ts")),
    styleText(),
    Bun.file(join(APP, "icon.svg")).text(),
  ]);
  const names = {
    script: named(page.scripts[0]!),
    worker: named(worker.scripts[0]!),
    files: named(files.scripts[0]!),
    style: `style-${hash(style)}.css`,
  };
  const scripts = [...page.scripts, ...worker.scripts, ...files.scripts].map((script): [string, Asset] => [
    named(script),
    { contentType: JAVASCRIPT, text: script.text },
  ]);
  return {
    ...Object.fromEntries(scripts),
    [names.style]: { contentType: "text/css; charset=utf-8", text: style },
    "icon.svg": { contentType: "image/svg+xml", text: icon },
    "": { contentType: "text/html; charset=utf-8", text: htmlOf(names) },
  };
}

/** Imported parts have their hash already; entries get one. */
const named = ({ name, text, isEntry }: BuiltScript): string =>
  isEntry ? name.replace(/\.js$/, `-${hash(text)}.js`) : name;

const hash = (text: string): string => Bun.hash(text).toString(36);

async function styleText(): Promise<string> {
  const texts = await Promise.all(STYLES.map((name) => Bun.file(join(APP, "style", `${name}.css`)).text()));
  return texts
    .join("\n")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\n\s*/g, "\n");
}

function served(files: PageFiles): ReadonlyMap<string, ServedAsset> {
  return new Map(
    Object.entries(files).map(([name, asset]) => {
      let gzipped: Uint8Array<ArrayBuffer> | undefined;
      const more = {
        etag: `"${hash(asset.text)}"`,
        isImmutable: /-[0-9a-z]{8,}\.(js|css)$/.test(name),
        gzipped: () => (gzipped ??= gzipSync(new TextEncoder().encode(asset.text))),
      };
      return [name, { ...asset, ...more }];
    }),
  );
}

/** Its URLs are relative to the page, at `/` or `/ui`, so that a proxy may serve it below another path. */
const htmlOf = ({
  script,
  worker,
  files,
  style,
}: {
  script: string;
  worker: string;
  files: string;
  style: string;
}): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover, interactive-widget=resizes-content">
<meta name="color-scheme" content="light dark">
<meta name="hearth-worker" content="ui/${worker}">
<meta name="hearth-files" content="ui/${files}">
<meta name="hearth-webllm" content="ui/${WEBLLM}">
<title>Hearth</title>
<link rel="icon" type="image/svg+xml" href="ui/icon.svg">
<style>${FIRST_STYLE}</style>
<script type="module" src="ui/${script}"></script>
</head>
<body>
<div id="app"></div>
<link rel="stylesheet" href="ui/${style}">
<noscript>Hearth's page needs JavaScript. The API is described at <a href="docs">docs</a>.</noscript>
</body>
</html>
`;
