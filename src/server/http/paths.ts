/** Paths and route patterns, in which `:name` matches one segment and `*` all further ones. */

export function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split("/");
  const given = path.length > 1 ? path.replace(/\/$/, "").split("/") : path.split("/");
  if (wanted.at(-1) === "*") return given.length >= wanted.length && fits(wanted.slice(0, -1), given);
  return wanted.length === given.length && fits(wanted, given);
}

const fits = (wanted: readonly string[], given: readonly string[]): boolean =>
  wanted.every((part, i) => part.startsWith(":") || part === given[i]);
