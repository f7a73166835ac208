/** How keys and values are kept: as half floats, or in 8 bits with a scale for each 32. */
export const KV_CACHE_TYPES = ["f16", "q8_0"] as const;
export type KvCacheType = (typeof KV_CACHE_TYPES)[number];

export const parseKvCacheType = (value: unknown): KvCacheType | undefined =>
  KV_CACHE_TYPES.find((type) => type === String(value).toLowerCase());
