/** The versions of the program and of the API that it speaks. */
import manifest from "../../package.json" with { type: "json" };

/** Hearth's version, from package.json. */
export const VERSION: string = manifest.version;

/** Ollama's API version: clients refuse servers older than the version that they need. */
export const API_VERSION = "0.33.0";
