/** A growing list of ids. */
export interface IdList {
  ids: Int32Array;
  length: number;
}

export function makeIdList(capacity: number): IdList {
  return { ids: new Int32Array(Math.max(16, capacity)), length: 0 };
}

export function pushId(list: IdList, id: number): void {
  if (list.length === list.ids.length) grow(list, list.length + 1);
  list.ids[list.length++] = id;
}

/** Appends `source[start, end)`. */
export function pushIds(list: IdList, source: Int32Array, start: number, end: number): void {
  if (list.length + end - start > list.ids.length) grow(list, list.length + end - start);
  for (let i = start; i < end; i++) list.ids[list.length++] = source[i]!;
}

function grow(list: IdList, least: number): void {
  const ids = new Int32Array(Math.max(least, list.ids.length * 2));
  ids.set(list.ids.subarray(0, list.length));
  list.ids = ids;
}
