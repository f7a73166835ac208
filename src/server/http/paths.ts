/** Paths and the patterns of routes, in which `:name` stands for one segment and `*` for all that follow. */

/** Whether a path fits a pattern. */
export function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split("/");
  const given = path.length > 1 ? path.replace(/\/$/, "").split("/") : path.split("/");
  if (wanted.at(-1) === "*") return given.length >= wanted.length && fits(wanted.slice(0, -1), given);
  return wanted.length === given.length && fits(wanted, given);
}

const fits = (wanted: readonly string[], given: readonly string[]): boolean =>
  wanted.every((part, i) => part.startsWith(":") || part === given[i]);
