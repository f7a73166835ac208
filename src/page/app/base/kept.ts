/**
 * What the browser keeps for this page by name. Where it keeps nothing, as in some private windows, or has no room
 * left, the tab remembers it alone.
 */

export type Kept = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** @param open the browser's storage; throws where it is forbidden */
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
