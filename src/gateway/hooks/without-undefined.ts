/** Absent fields are absent: for objects that are stored, merged or compared. */

/** A copy without the fields that are undefined. */
export function withoutUndefined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as { [K in keyof T]?: Exclude<T[K], undefined> }; // the same keys, fewer of them
}
