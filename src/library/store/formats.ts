/** Model formats that a GGUF only describes, and where they run. */
import { AppError } from "../../base/index.ts";

/** Values of `general.architecture` in the GGUF and `model_format` in the configuration. */
const FORMATS: readonly string[] = ["onnx", "mlc"];

export const isFileFormat = (architecture: string): boolean => FORMATS.includes(architecture);

interface NamedConfig {
  readonly displayName: string;
  readonly config: { readonly model_format?: string };
}

/** Throws `unsupported` for a model that only a page can run. */
export function checkRunsHere({ displayName, config }: NamedConfig): void {
  if (config.model_format !== "mlc") return;
  const where = "it runs in a browser with WebGPU: open /ui on this server and choose 'In this page, with WebLLM'";
  throw new AppError(
    "unsupported",
    `model '${displayName}' was compiled by MLC for pages and cannot run on the server: ${where}`,
  );
}
