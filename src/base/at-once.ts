/** Work on many things, some of it at once. */

/** Enough for the disk and its threads to be busy, and few open files. */
const WIDTH = 32;

/** What `work` gives for each, in their order. Rejects as the first that fails; what had begun by then goes on. */
export async function mapAtOnce<A, B>(items: readonly A[], work: (item: A) => Promise<B>): Promise<B[]> {
  const made: B[] = [];
  for (let at = 0; at < items.length; at += WIDTH) {
    for (const each of await Promise.all(items.slice(at, at + WIDTH).map(work))) made.push(each);
  }
  return made;
}
