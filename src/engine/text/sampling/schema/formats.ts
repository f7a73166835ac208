/**
 * `format` of JSON Schema as patterns. Each describes a subset of the format that every validator accepts; unlisted
 * names are annotations. (JSON Schema 2020-12 validation, section 7.3; RFC 3339, 4122, 5321, 1123, 3986.)
 */

const LONG_MONTH = "(0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])";
const SHORT_MONTH = "(0[469]|11)-(0[1-9]|[12]\\d|30)";
const FEBRUARY = "02-(0[1-9]|1\\d|2[0-8])"; // without the leap day, which is missing in most years
const DATE = `\\d{4}-(${LONG_MONTH}|${SHORT_MONTH}|${FEBRUARY})`;
const TIME = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?";
const ZONE = "(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
const OCTET = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const LABEL = "[a-z0-9]+(-[a-z0-9]+)*";
const HOST = `${LABEL}(\\.${LABEL})*\\.[a-z]{2,6}`;

export const FORMATS: Readonly<Record<string, string>> = {
  date: `^${DATE}$`,
  time: `^${TIME}${ZONE}$`,
  "date-time": `^${DATE}T${TIME}Z$`, // validators disagree on offsets
  duration: "^P(\\d{1,3}W|\\d{1,3}D(T\\d{1,3}H)?|T\\d{1,3}[HMS])$",
  uuid: "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
  email: `^[A-Za-z0-9]+([._+-][A-Za-z0-9]+)*@${HOST}$`,
  hostname: `^${HOST}$`,
  ipv4: `^${OCTET}(\\.${OCTET}){3}$`,
  ipv6: "^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$",
  uri: `^https?://${HOST}(/[A-Za-z0-9._~-]*)*(\\?[A-Za-z0-9._~=&-]*)?$`,
};
