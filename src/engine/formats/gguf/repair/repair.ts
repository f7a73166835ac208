/**
 * Repairs files of a family that use another layout than llama.cpp's: renames keys and tensors, adds missing keys whose
 * values the writer knew, and hides tensors of other parts than the text model. The layouts come from converters for
 * other engines; millions of such files are in circulation.
 */
import type { EditableHeader } from "./editable-header.ts";

export interface Repair {
  /** The family's usual name, for display. */
  readonly family: string;
  /** Returns whether the file has the layout, by a mark that files in llama.cpp's layout never have. */
  applies(header: EditableHeader): boolean;
  apply(header: EditableHeader): void;
  /** Moves a draft layer after the other blocks, if the file has one elsewhere; runs before `apply`. */
  moveDraftLayer?(header: EditableHeader): void;
}

/** Tensors of image, audio and other parts besides the text model. */
export const MEDIA_TENSORS = /^(v|a|s|mm|model\.vision_tower)\./;
/** Tensors of draft layers. */
export const DRAFT_TENSORS = /^mtp\./;

/** Returns whether the text model's file also has a media part. */
export function hasMedia(header: EditableHeader): boolean {
  return header.hasTensor(MEDIA_TENSORS);
}

/** `rope.dimension_sections`: the number of pairs per head for each of four positions. These writers gave three. */
export function setSections(header: EditableHeader): void {
  const sections = header.numbers("rope.dimension_sections") ?? header.numbers("rope.mrope_section");
  if (sections?.length === 3) header.set("rope.dimension_sections", Int32Array.of(...sections, 0));
  header.delete("rope.mrope_section");
}
