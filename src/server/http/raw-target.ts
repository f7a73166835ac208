/**
 * The request target as the client wrote it. Bun hands out a URL in which `\` has become `/` and dot segments are
 * resolved, so `/hooks/..\api/tags` reads as `/api/tags`; a proxy that publishes `/hooks/` alone has let it through.
 * Bun's router, though, matches the raw target: routes of nothing but parameters show each segment, percent-decoded.
 */

/** Segments of a path; a deeper one is seen only after it was resolved. */
const SEGMENTS_MAX = 16;

/** Routes that match every path of at most `SEGMENTS_MAX` segments that are not empty, with or without a last slash. */
export const SEEN_ROUTES: readonly string[] = Array.from({ length: SEGMENTS_MAX + 1 }, (_, count) => {
  const path = Array.from({ length: count }, (_, i) => `/:p${i}`).join("");
  return count === 0 ? ["/"] : [path, `${path}/`];
}).flat();

/** Segments behind a doubled slash. */
const DOUBLED_MAX = 6;

/**
 * Routes of targets that a client made of a base URL with a slash at its end: `//api/chat`, `/v1//models`. They match
 * the raw target, so no dots or backslashes have made the second slash.
 */
export const DOUBLED_ROUTES: readonly string[] = ["api", "v1"].flatMap((api) =>
  Array.from({ length: DOUBLED_MAX }, (_, last) => {
    const rest = Array.from({ length: last + 1 }, (_, i) => `/:p${i}`).join("");
    return [`//${api}${rest}`, `//${api}${rest}/`, `/${api}/${rest}`, `/${api}/${rest}/`];
  }).flat(),
);

/** Whether a target that is this path as it stands matches one of the routes. */
export function isSeen(pathname: string): boolean {
  const segments = segmentsOf(pathname);
  return segments.length <= SEGMENTS_MAX && !segments.includes("");
}

/**
 * Whether resolving has changed a target.
 * @param segments of the raw target, decoded; undefined: no route matched it
 * @param pathname of the resolved URL
 */
export function isResolved(segments: readonly string[] | undefined, pathname: string): boolean {
  if (!segments) return isSeen(pathname); // as it stands, a route would have matched it
  return segments.length !== segmentsOf(pathname).length || segments.some((each) => /\\|^\.{1,2}$/.test(each));
}

/** The path as a proxy may read it that decodes first: no escapes, backslashes, dot segments or empty segments. */
export function decodedPath(pathname: string): string {
  const kept: string[] = [];
  for (const segment of decodeTwice(pathname).split(/[/\\]+/)) {
    if (segment === "..") kept.pop();
    else if (segment !== "." && segment !== "") kept.push(segment);
  }
  return `/${kept.join("/")}`;
}

/** Escaped twice, a slash passes through two proxies. */
const decodeTwice = (text: string): string => decode(decode(text));

/** Only the escapes that make another path. */
const decode = (text: string): string =>
  text.replace(/%(2e|2f|5c|25)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/** One slash at the end ends the last segment. */
const segmentsOf = (pathname: string): string[] =>
  pathname === "/" ? [] : pathname.slice(1).replace(/\/$/, "").split("/");
