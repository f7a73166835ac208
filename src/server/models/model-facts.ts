/** Facts from a model's files, and the capabilities of a runner for it. */
import { AppError } from "../../base/index.ts";
import { DIFFUSION_ARCHS, type Options, RANK, statedPooling } from "../../engine/index.ts";
import {
  type Metadata,
  type ModelHeader,
  projectorHeader,
  readHeader,
  repairHeader,
} from "../../engine/formats/index.ts";
import { canFill, fileOptions } from "../../engine/text/index.ts";
import { describeGguf, type GgufDetails } from "../../library/index.ts";
import type { ModelEntry } from "../../library/portable.ts";
import { hasAudioEncoder, hasProjector, projectorKind } from "../../engine/media.ts";
import { effectiveTemplate } from "./effective-template.ts";

export interface ModelFacts {
  readonly gguf: GgufDetails;
  /** `completion`, `vision`, `audio`, `tools`, `insert`, `embedding`, `thinking`, `transcription`. */
  readonly capabilities: readonly string[];
  /** Sampling options that the file recommends. */
  readonly parameters: Options;
}

/** Throws `bad_file` if the files cannot be read, `not_found` if they are gone. */
export async function readFacts(entry: ModelEntry): Promise<ModelFacts> {
  const file = await readHeader(entry.paths.model, { arrayItemsMax: onlyTokens });
  const header = repairHeader(file);
  const senses = await sensesOf(entry, file);
  return {
    gguf: describeGguf(header),
    capabilities: capabilitiesOf(entry, header.metadata, senses),
    parameters: fileOptions(header.metadata),
  };
}

interface Senses {
  readonly sees: boolean;
  readonly hears: boolean;
}

/** The files that a runner of the model would accept: through a projector file, or encoders in the model's own. */
async function sensesOf({ paths: { projectors } }: ModelEntry, file: ModelHeader): Promise<Senses> {
  const [path] = projectors;
  const header = path === undefined ? file : await readHeader(path, { arrayItemsMax: 0 });
  try {
    const { metadata } = projectorHeader(header) ?? {};
    return {
      sees: metadata !== undefined && hasProjector(projectorKind(metadata)),
      hears: metadata !== undefined && hasAudioEncoder(projectorKind(metadata, "audio")),
    };
  } catch (error) {
    // the model's text part may be fine
    if (error instanceof AppError && error.code === "bad_file") return { sees: false, hears: false };
    throw error;
  }
}

/** Models that can fill in the middle are recognised by their tokens. */
const onlyTokens = (key: string): number => (key === "tokenizer.ggml.tokens" ? Infinity : 0);

/**
 * Capabilities that a configuration can claim but only the files can prove. They count only if they were given to
 * `create` on this server, because clients rely on them.
 */
const UNSERVED: ReadonlySet<string> = new Set(["vision", "audio", "image"]);

/** In the customary order. */
function capabilitiesOf(entry: ModelEntry, metadata: Metadata, { sees, hears }: Senses): string[] {
  const arch = String(metadata.get("general.architecture"));
  const kind = arch === "onnx" ? metadata.get("onnx.model_type") : arch;
  if (kind === "whisper") return ["transcription"];
  const pooling = statedPooling(metadata, arch);
  const fillsMasks = DIFFUSION_ARCHS.has(arch);
  const embeds = pooling !== undefined || (!fillsMasks && metadata.get(`${arch}.attention.causal`) === false);
  const { native, capabilities } = effectiveTemplate(entry, metadata);
  const own = new Set(entry.config.hearth_capabilities);
  const fromTemplate = (["tools", "insert", "thinking"] as const).filter(
    (name) => capabilities[name] || (name === "insert" && !fillsMasks && canFill(metadata)),
  );
  const found = [
    ...(entry.config.capabilities ?? []).filter((name) => !UNSERVED.has(name) || own.has(name)),
    ...(native ? fromTemplate : []),
    embeds ? "embedding" : "completion",
    ...(sees ? ["vision"] : []),
    ...(hears ? ["audio"] : []),
    ...(pooling === RANK ? ["rerank"] : []),
    ...(native ? [] : fromTemplate),
  ];
  return [...new Set(found)];
}
