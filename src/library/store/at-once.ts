/** Work on many items with bounded concurrency. */

/** Keeps a disk and its threads busy with few open files. */
const FILES_AT_ONCE = 32;

/**
 * The results of `work`, in order. Rejects with the first failure; work in progress then continues.
 * @param width maximum concurrency
 */
export async function mapAtOnce<A, B>(
  items: readonly A[],
  work: (item: A) => Promise<B>,
  width = FILES_AT_ONCE,
): Promise<B[]> {
  const made: B[] = [];
  for (let at = 0; at < items.length; at += width) {
    for (const each of await Promise.all(items.slice(at, at + width).map(work))) made.push(each);
  }
  return made;
}
