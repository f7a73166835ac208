/** Work on many things, some of it at once. */

/** Enough for a disk and its threads to be busy, and few open files. */
const FILES_AT_ONCE = 32;

/**
 * What `work` gives for each, in their order. Rejects as the first that fails; what had begun by then goes on.
 * @param width at once at most
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
