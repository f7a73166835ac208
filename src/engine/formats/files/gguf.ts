/** Opens a local GGUF model: mapped, nothing copied. */
import type { Gguf } from "../gguf/gguf.ts";
import { openGgufFrom } from "../gguf/read.ts";
import { mapFile } from "./map.ts";

/** Throws as `openGgufFrom` does. */
export const openGguf = (path: string): Gguf => openGgufFrom(mapFile, path);
