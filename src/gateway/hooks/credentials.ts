/**
 * Names of headers and query parameters that hold credentials: after authentication no code reads, stores or renders
 * them.
 */

/** Words, between dashes, in the names of headers that hold secrets. */
const SECRET_WORDS = new Set(
  (
    "auth authorization authentication cookie cookie2 token jwt secret signature hmac password passwd credential " +
    "credentials assertion apikey"
  ).split(" "),
);
const SECRET_NAME = /api-?key|signature|authorization|cookie/;
const SECRET_PARAMETER = /^(token|access[-_]?token|auth|api[-_]?key|key|secret|signature|sig|password)$/i;

/** @param name lower-case */
export const isCredentialHeader = (name: string): boolean =>
  SECRET_NAME.test(name) || name.split("-").some((word) => SECRET_WORDS.has(word));

export const isCredentialParameter = (name: string): boolean => SECRET_PARAMETER.test(name);
