/** Counts the images and recordings that a server encodes. */

/** Returns a function that says how many files were encoded, and found in the cache, since its last call. */
export function mediaCounts(urlOf: () => string): () => Promise<string> {
  const before = { encoded: 0, reused: 0 };
  return async () => {
    const text = await (await fetch(`${urlOf()}/metrics`)).text();
    const read = (how: string): number =>
      Number(new RegExp(`^hearth_images_${how}_total (\\d+)$`, "m").exec(text)?.[1]);
    const now = { encoded: read("encoded"), reused: read("reused") };
    const said = `${now.encoded - before.encoded} encoded, ${now.reused - before.reused} reused`;
    Object.assign(before, now);
    return said;
  };
}
