/**
 * Repairs between reading a GGUF and everything else. A file in llama.cpp's layout passes untouched. To add a family:
 * one `Repair` in a separate file or beside its relatives, and a line here.
 */
import type { Gguf, ModelHeader } from "../gguf.ts";
import { inFile } from "../in-file.ts";
import { EditableHeader, type Part } from "./editable-header.ts";
import { embeddingGemma, gemma3, gemma3n, gemma4 } from "./gemma.ts";
import { glm4MoeLite, glmOcr } from "./glm.ts";
import { gptOss } from "./gpt-oss.ts";
import { lfm2, nemotronHMoe, nemotronOmni } from "./hybrids.ts";
import { llama3, llama4 } from "./llama.ts";
import { mistral3 } from "./mistral.ts";
import { charsmap, deepseekOcr, laguna, olmo3, rwkvWorld } from "./others.ts";
import { qwen25vl, qwen35, qwen3next, qwen3vl } from "./qwen.ts";
import type { Repair } from "./repair.ts";
import { VISION_REPAIRS } from "./vision.ts";

/** In order; each sees the result of the ones before it. */
const REPAIRS: readonly Repair[] = [
  embeddingGemma,
  gemma3,
  gemma3n,
  gemma4,
  qwen35,
  qwen3next,
  qwen25vl,
  qwen3vl,
  gptOss,
  mistral3,
  llama3,
  llama4,
  glmOcr,
  glm4MoeLite,
  lfm2,
  nemotronOmni,
  nemotronHMoe,
  olmo3,
  laguna,
  deepseekOcr,
  charsmap,
  rwkvWorld,
];

/**
 * A header in llama.cpp's layout. Offsets refer to the bytes in the file.
 * Throws `bad_file` if a file has the mark of a family but lacks what its repair needs.
 */
export function repairHeader(header: ModelHeader): ModelHeader {
  const edited = repair(header);
  return edited ? { ...header, ...partsOf(edited) } : header;
}

/** As `repairHeader`, for an open file: `read` takes the names of the repaired header. Closing it closes the file. */
export function repairGguf(gguf: Gguf): Gguf {
  const edited = repair(gguf);
  return edited ? readThrough(gguf, edited) : gguf;
}

/**
 * As `repairGguf`, with a draft layer after the other blocks, as in llama.cpp's files. The file stays open until closed
 * separately.
 */
export function withDraftBlock(gguf: Gguf): Gguf {
  const edited = repair(gguf, { movesDraftLayer: true });
  return edited ? readThrough(gguf, edited) : gguf;
}

/** Reads a file through an edited header. */
function readThrough(gguf: Gguf, edited: EditableHeader): Gguf {
  const kept = new Map<string, Uint8Array>(); // because callers keep their addresses
  const make = (name: string, { from, made }: Part): Uint8Array | undefined => {
    if (!made) return undefined;
    const bytes = kept.get(name) ?? made.of(gguf.readRange(from.name, from.start, made.sourceBytes));
    kept.set(name, bytes);
    return bytes;
  };
  return {
    ...gguf,
    ...partsOf(edited),
    read(name) {
      const part = edited.parts.get(name);
      if (!part) return gguf.read(name); // refuses an unknown name
      return make(name, part) ?? gguf.readRange(part.from.name, part.from.start, part.info.byteLength);
    },
    readRange(name, start, length) {
      const part = edited.parts.get(name);
      const made = part && make(name, part);
      if (made) return made.subarray(start, start + length);
      const from = part?.from ?? { name, start: 0 }; // an unknown name is refused
      return gguf.readRange(from.name, from.start + start, length);
    },
    place(name) {
      const part = edited.parts.get(name);
      if (!part) return gguf.place?.(name);
      const whole = part.made ? undefined : gguf.place?.(part.from.name);
      return whole && { ...whole, offset: whole.offset + part.from.start, byteLength: part.info.byteLength };
    },
    close: () => gguf.close(),
  };
}

/**
 * The image encoder in a text model's file, in the form of a projector file; undefined if the file has none in a known
 * layout. A projector file itself is returned unchanged, or repaired.
 */
export function projectorHeader(header: ModelHeader): ModelHeader | undefined {
  const edited = visionHeader(header);
  return edited && { ...header, ...partsOf(edited) };
}

/** As `projectorHeader`, for an open file. Closing it closes the file. */
export function projectorGguf(gguf: Gguf): Gguf | undefined {
  const edited = visionHeader(gguf);
  return edited && readThrough(gguf, edited);
}

function visionHeader(header: ModelHeader): EditableHeader | undefined {
  const edited = new EditableHeader(header);
  return inFile(header.path, () => {
    const found = VISION_REPAIRS.find((each) => each.applies(edited));
    found?.apply(edited);
    return found && edited;
  });
}

function repair(header: ModelHeader, { movesDraftLayer = false } = {}): EditableHeader | undefined {
  const edited = new EditableHeader(header);
  const applied = inFile(header.path, () =>
    REPAIRS.filter((each) => {
      const applies = each.applies(edited);
      if (applies && movesDraftLayer) each.moveDraftLayer?.(edited);
      if (applies) each.apply(edited);
      return applies;
    }),
  );
  return applied.length > 0 ? edited : undefined;
}

function partsOf(edited: EditableHeader): Pick<Gguf, "metadata" | "tensors"> {
  return { metadata: edited.metadata, tensors: new Map([...edited.parts].map(([name, { info }]) => [name, info])) };
}
