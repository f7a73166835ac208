/** The versions of the program and of the API that it speaks. */
import manifest from "../../package.json" with { type: "json" };

/** Of Hearth, from package.json, so that it stands in one place. */
export const VERSION: string = manifest.version;

/** Of Ollama's API: clients refuse a server whose version is older than what they need. */
export const API_VERSION = "0.33.0";
