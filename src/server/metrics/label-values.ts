/** Values of a metric label, bounded: callers choose some of these names and must not fill memory with them. */

/** Keeps the first `max` names, and maps later ones to `other`. */
export function capped(max: number): (name: string) => string {
  const known = new Set<string>();
  return (name) => {
    if (!known.has(name) && known.size >= max) return "other";
    known.add(name);
    return name;
  };
}
