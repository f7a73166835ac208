/** Keys and values of OpenClaw's configuration, and Hearth's names for them. */
import type { Path } from "../../base/config/index.ts";

/** By path without indexes. */
const KEYS: Readonly<Record<string, string>> = {
  "hooks.gmail": "hooks.mail, beside 'mail' in hooks.presets",
  "hooks.allowRequestSessionKey": "hooks.sessionKeys.allowFromRequest",
  "hooks.allowedSessionKeyPrefixes": "hooks.sessionKeys.prefixes",
  "hooks.defaultSessionKey": "hooks.sessionKeys.default",
  "hooks.signature": "auth, of each mapping",
  "hooks.mappings.signature": "auth",
  "gateway.auth": "gateway.token",
  "gateway.port": "host, at the top of the file",
  "gateway.bind": "host, at the top of the file",
};

/** Our name of another program's key; undefined if it has none. */
export const foreignKey = (path: Path): string | undefined => KEYS[placeOf(path)];

/** Our name of another program's value. */
export const foreignValue = (path: Path, value: unknown): string | undefined =>
  placeOf(path) === "hooks.presets" && value === "gmail" ? "'mail'" : undefined;

const placeOf = (path: Path): string => path.filter((key) => typeof key === "string").join(".");
