/** Parses a model argument: a name, the URL of a model's page, or the path of a file or folder of weights. */
import { stat } from "node:fs/promises";
import { resolvePath } from "../client/model-files.ts";

export type ModelArgument =
  | { readonly kind: "name"; readonly name: string }
  /** An existing path. */
  | { readonly kind: "path"; readonly path: string; readonly isFolder: boolean };

/** Throws for a path that does not exist, and for a URL that names no model. */
export async function readModelArgument(text: string): Promise<ModelArgument> {
  const name = nameOfAddress(text.trim());
  if (name !== undefined) return { kind: "name", name };
  if (!isPath(text)) return { kind: "name", name: text.trim() };
  const path = resolvePath(text, process.cwd());
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new Error(`no such file: ${path}`);
  return { kind: "path", path, isFolder: found.isDirectory() };
}

/** `./x`, `../x`, `/x`, `~/x`, `~\x`, `C:\x`, and files of weights in this folder. */
const isPath = (text: string): boolean =>
  /^(\.{1,2}([\\/]|$)|[\\/]|~([\\/]|$)|[A-Za-z]:[\\/])/.test(text) ||
  /^[^:]+\.(gguf|safetensors)$|^ggml-[^:]+\.bin$/i.test(text);

/** The model name in a web URL; undefined: the text is not such a URL. */
function nameOfAddress(text: string): string | undefined {
  const [, scheme, host = "", path = ""] = /^(https?:\/\/)?([^/]+)\/([^?#]*)/i.exec(text) ?? [];
  const parts = path.split("/").filter((part) => part !== "");
  if (/^(www\.)?ollama\.com$/i.test(host)) return pageOfLibrary(parts, text);
  if (/^(www\.)?(huggingface\.co|hf\.co)$/i.test(host)) return repository(parts, text);
  if (scheme && /\.(gguf|safetensors|zip|bin)$/i.test(path)) {
    const file = parts.at(-1) ?? "";
    throw new Error(
      `files of the web are not run from there: download it (curl -LO ${text}), then 'hearth run ./${file}'`,
    );
  }
  return undefined;
}

/** `library/NAME`, or `USER/NAME`. */
function pageOfLibrary([user, model]: readonly string[], text: string): string {
  if (!user || !model) throw new Error(`'${text}' names no model: expected ollama.com/library/NAME`);
  return user === "library" ? model : `${user}/${model}`;
}

/** `OWNER/REPOSITORY`, optionally with `:QUANT`, or the page of one file, whose name becomes the tag. */
function repository([owner, model, page, , ...file]: readonly string[], text: string): string {
  if (!owner || !model) throw new Error(`'${text}' names no model: expected hf.co/OWNER/REPOSITORY, maybe with :QUANT`);
  const isFile = (page === "blob" || page === "resolve") && file.length === 1 && /\.gguf$/i.test(file[0] ?? "");
  return `hf.co/${owner}/${model}${isFile ? `:${file[0]}` : ""}`;
}
