/** Variables that look like our settings but are not: misspelled, or from another version. */
import { nearest } from "../nearest.ts";

const PREFIX = "HEARTH_";

/** Settings without a row in `SETTINGS`, variables of the command line, and data folders of the repository's tests. */
const READ_ELSEWHERE = [
  "HEARTH_CONFIG",
  "HEARTH_HOME",
  "HEARTH_API_KEY",
  "HEARTH_GATEWAY_TOKEN",
  "HEARTH_HOOK_SECRET",
  "HEARTH_UPDATE_URL",
  "HEARTH_UPDATE_KEY",
  "HEARTH_GOLDEN",
  "HEARTH_ARCHS",
  "HEARTH_TEMPLATES",
];

/** Variables of the repository's tests, and Kubernetes' variables for services whose names begin with `hearth`. */
const OTHERS = /^HEARTH_(TEST_\w+|(\w+_)?SERVICE_(HOST|PORT)(_\w+)?|(\w+_)?PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)$/;
const SERVICE_PORT = /^HEARTH_(\w+_)?PORT$/;

/**
 * One line for each variable of ours that is set but never read.
 * @param known variables of settings, and those in the configuration file
 */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>, known: Iterable<string>): string[] {
  const all = [...new Set([...known, ...READ_ELSEWHERE])].filter((name) => name.startsWith(PREFIX));
  const isOurs = (name: string): boolean => name.startsWith(PREFIX) && (env[name]?.trim() ?? "") !== "";
  const isService = (name: string): boolean =>
    OTHERS.test(name) || (SERVICE_PORT.test(name) && /^(tcp|udp|sctp):\/\//.test(env[name] ?? ""));
  const unknown = Object.keys(env).filter((name) => isOurs(name) && !all.includes(name) && !isService(name));
  return unknown.sort().map((name) => {
    const near = nearest(
      name.slice(PREFIX.length),
      all.map((each) => each.slice(PREFIX.length)),
    );
    return `${name} is not a setting and has no effect${near === undefined ? "" : `; did you mean ${PREFIX}${near}?`}`;
  });
}
