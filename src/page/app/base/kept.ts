/**
 * The browser's storage by name. If it is unavailable, as in some private windows, or full, values last as long as the
 * tab.
 */

export type Kept = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** @param open the browser's storage; throws if it is forbidden */
export function makeKept(open: () => Storage): Kept {
  const unkept = new Map<string, string>();
  const tried = <T>(work: (storage: Storage) => T, failed: T): T => {
    try {
      return work(open());
    } catch {
      return failed;
    }
  };
  return {
    getItem: (name) => unkept.get(name) ?? tried((storage) => storage.getItem(name), null),
    setItem(name, value) {
      const isKept = tried((storage) => (storage.setItem(name, value), true), false);
      if (isKept) unkept.delete(name);
      else unkept.set(name, value);
    },
    removeItem(name) {
      unkept.delete(name);
      tried((storage) => storage.removeItem(name), undefined);
    },
  };
}
