/**
 * Repairs between reading a GGUF and everything else. A file in llama.cpp's layout passes untouched. To add a family:
 * one `Repair` in a file of its own or beside its relatives, and a line here.
 */
import type { Gguf, ModelHeader } from "../gguf.ts";
import { Draft } from "./draft.ts";
import { embeddingGemma, gemma3, gemma3n, gemma4 } from "./gemma.ts";
import { glm4MoeLite, glmOcr } from "./glm.ts";
import { gptOss } from "./gpt-oss.ts";
import { lfm2, nemotronHMoe, nemotronOmni } from "./hybrids.ts";
import { llama3, llama4 } from "./llama.ts";
import { mistral3 } from "./mistral.ts";
import { charsmap, deepseekOcr, laguna, olmo3 } from "./others.ts";
import { qwen25vl, qwen35, qwen3next, qwen3vl } from "./qwen.ts";
import type { Repair } from "./repair.ts";

/** In the order in which they are tried; each sees what those before it made. */
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
];

/**
 * A header in llama.cpp's layout. Offsets are those of the bytes in the file.
 * Throws `bad_file` where a file has the mark of a family and lacks what its repair needs.
 */
export function repairHeader(header: ModelHeader): ModelHeader {
  const draft = repair(header);
  return draft ? { ...header, ...partsOf(draft) } : header;
}

/** As `repairHeader`, for an open file: `read` takes the names of the repaired header. Closing it closes the file. */
export function repairGguf(gguf: Gguf): Gguf {
  const draft = repair(gguf);
  if (!draft) return gguf;
  return {
    ...gguf,
    ...partsOf(draft),
    read(name) {
      const part = draft.parts.get(name);
      if (!part) return gguf.read(name); // refuses a name that is not there
      const { info, from } = part;
      return gguf.readRange(from.name, from.start, info.byteLength);
    },
    readRange(name, start, length) {
      const from = draft.parts.get(name)?.from ?? { name, start: 0 }; // a name that is not there is refused
      return gguf.readRange(from.name, from.start + start, length);
    },
    close: () => gguf.close(),
  };
}

function repair(header: ModelHeader): Draft | undefined {
  const draft = new Draft(header);
  const applied = REPAIRS.filter((each) => {
    const applies = each.applies(draft);
    if (applies) each.apply(draft);
    return applies;
  });
  return applied.length > 0 ? draft : undefined;
}

function partsOf(draft: Draft): Pick<Gguf, "metadata" | "tensors"> {
  return { metadata: draft.metadata, tensors: new Map([...draft.parts].map(([name, { info }]) => [name, info])) };
}
