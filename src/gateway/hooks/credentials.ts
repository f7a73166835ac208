/**
 * Which headers and query parameters prove who sent a request: nothing behind the door reads, keeps or renders them.
 */

/** Words, between dashes, of names by which senders call what only they should know. */
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
