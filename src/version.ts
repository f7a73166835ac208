/** The version, from package.json, so that it stands in one place. */
import manifest from "../package.json" with { type: "json" };

export const VERSION: string = manifest.version;
