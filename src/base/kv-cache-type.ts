/** Formats of the KV cache: float16, or 8 or 4 bits with a scale for each 32 values. */
export const KV_CACHE_TYPES = ["f16", "q8_0", "q4_0"] as const;
export type KvCacheType = (typeof KV_CACHE_TYPES)[number];

export const parseKvCacheType = (value: unknown): KvCacheType | undefined =>
  KV_CACHE_TYPES.find((type) => type === String(value).toLowerCase());
