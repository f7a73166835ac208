/**
 * The request target as the client wrote it. Bun's URL turns `\` into `/` and resolves dot segments, so
 * `/hooks/..\api/tags` reads as `/api/tags`; a proxy that publishes only `/hooks/` has let it through. Bun's router,
 * however, matches the raw target: the parameters of a route show each segment, percent-decoded.
 */

/** Maximum number of segments of a path; a deeper one is seen only in resolved form. */
const SEGMENTS_MAX = 16;

/** Routes that match every path of at most `SEGMENTS_MAX` non-empty segments, with or without a final slash. */
export const SEEN_ROUTES: readonly string[] = Array.from({ length: SEGMENTS_MAX + 1 }, (_, count) => {
  const path = Array.from({ length: count }, (_, i) => `/:p${i}`).join("");
  return count === 0 ? ["/"] : [path, `${path}/`];
}).flat();

/** Segments after a doubled slash. */
const DOUBLED_MAX = 6;

/**
 * Routes of targets made from a base URL with a final slash: `//api/chat`, `/v1//models`. They match the raw target, so
 * the second slash does not come from dots or backslashes.
 */
export const DOUBLED_ROUTES: readonly string[] = ["api", "v1"].flatMap((api) =>
  Array.from({ length: DOUBLED_MAX }, (_, last) => {
    const rest = Array.from({ length: last + 1 }, (_, i) => `/:p${i}`).join("");
    return [`//${api}${rest}`, `//${api}${rest}/`, `/${api}/${rest}`, `/${api}/${rest}/`];
  }).flat(),
);

/** True if a route matches a raw target equal to this path. */
export function isSeen(pathname: string): boolean {
  const segments = segmentsOf(pathname);
  return segments.length <= SEGMENTS_MAX && !segments.includes("");
}

/**
 * True if resolving has changed a target.
 * @param segments of the raw target, decoded; undefined: no route matched it
 * @param pathname of the resolved URL
 */
export function isResolved(segments: readonly string[] | undefined, pathname: string): boolean {
  if (!segments) return isSeen(pathname); // unchanged, a route would have matched it
  return segments.length !== segmentsOf(pathname).length || segments.some((each) => /\\|^\.{1,2}$/.test(each));
}

/**
 * The path in the form that a decoding proxy may see: without escapes, backslashes, dot segments and empty segments.
 */
export function decodedPath(pathname: string): string {
  const kept: string[] = [];
  for (const segment of decodeTwice(pathname).split(/[/\\]+/)) {
    if (segment === "..") kept.pop();
    else if (segment !== "." && segment !== "") kept.push(segment);
  }
  return `/${kept.join("/")}`;
}

/** A slash escaped twice passes through two proxies. */
const decodeTwice = (text: string): string => decode(decode(text));

/** Decodes only the escapes that change the path's segments. */
const decode = (text: string): string =>
  text.replace(/%(2e|2f|5c|25)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/** A final slash ends the last segment. */
const segmentsOf = (pathname: string): string[] =>
  pathname === "/" ? [] : pathname.slice(1).replace(/\/$/, "").split("/");
