/** The encoder in a Whisper's file, in the form of a file of an audio encoder. */
import type { MetadataValue } from "../gguf.ts";
import type { Repair } from "./repair.ts";

const OWN = "whisper.audio.";

export const whisperEncoder: Repair = {
  family: "Whisper",
  applies: (header) => header.arch === "whisper" && header.has("audio.block_count"),
  apply(header) {
    const keys = new Map<string, MetadataValue>([
      ["general.architecture", "clip"],
      ["clip.has_audio_encoder", true],
      ["clip.audio.projector_type", "whisper"],
    ]);
    for (const [key, value] of header.metadata)
      if (key.startsWith(OWN)) keys.set(`clip.audio.${key.slice(OWN.length)}`, value);
    header.hide(/^(?!a\.)/);
    header.metadata.clear();
    for (const [key, value] of keys) header.metadata.set(key, value);
  },
};
