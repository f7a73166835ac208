/** Keeps the cross attention of a model to images only where it can be of use: it takes memory for each sequence. */
import type { Gguf } from "../formats/gguf/gguf.ts";
import type { Backend, Program } from "../program/backend.ts";
import { withoutMemory } from "../program/memory.ts";

export interface Projector {
  readonly gguf: Gguf;
  readonly isOwn: boolean;
}

interface Seeing {
  readonly program: Program;
  readonly projector: Projector | undefined;
  /** Set if the model takes no images although it has an encoder: the reason. */
  readonly lacks?: { readonly visionMissing: string };
}

/** Closes a projector file that is of no use. */
export function forImages(
  program: Program,
  projector: Projector | undefined,
  { backend }: { readonly backend: Backend },
): Seeing {
  const { memory, reader, writesSpeech = false } = program;
  if (!memory || reader || writesSpeech) return { program, projector };
  const bare = withoutMemory(program);
  if (!projector) return { program: bare, projector };
  const lacking = (each: Program): readonly string[] => backend.missing?.(each) ?? [];
  if (lacking(program).length === lacking(bare).length) return { program, projector };
  if (projector.isOwn) projector.gguf.close();
  const visionMissing = `images need another backend than '${backend.name}'`;
  return { program: bare, projector: undefined, lacks: { visionMissing } };
}
