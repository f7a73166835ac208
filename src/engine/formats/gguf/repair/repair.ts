/**
 * Files of one family that were written in another layout than llama.cpp's, and how they become that: keys and tensors
 * under other names, missing keys whose values the writer knew, tensors of parts that are no text model. The layouts
 * are those of converters that wrote for an engine of their own; millions of such files are in circulation.
 */
import type { Draft } from "./draft.ts";

export interface Repair {
  /** For people: the family, as its users name it. */
  readonly family: string;
  /** Whether the file has the layout: a marker that files in llama.cpp's layout never have. */
  applies(draft: Draft): boolean;
  apply(draft: Draft): void;
  /** Makes a layer that drafts the block behind the others, where the file has one elsewhere; before `apply`. */
  moveDraftLayer?(draft: Draft): void;
}

/** Tensors of image, audio and other parts beside the text model. */
export const MEDIA_TENSORS = /^(v|a|s|mm|model\.vision_tower)\./;
/** Tensors of layers that only draft. */
export const DRAFT_TENSORS = /^mtp\./;

/** Whether a media part lies in the file of the text model. */
export function hasMedia(draft: Draft): boolean {
  return draft.hasTensor(MEDIA_TENSORS);
}

/** `rope.dimension_sections`: how many pairs of a head rotate by which of four positions. The writers gave three. */
export function setSections(draft: Draft): void {
  const sections = draft.numbers("rope.dimension_sections") ?? draft.numbers("rope.mrope_section");
  if (sections?.length === 3) draft.set("rope.dimension_sections", Int32Array.of(...sections, 0));
  draft.delete("rope.mrope_section");
}
