/**
 * The section `channels` of the configuration. Each platform brings the schema of its own settings; this file knows
 * what they share.
 */
import { z } from "zod";

/** Settings that every platform has, for a platform's own `z.strictObject({ ...channelSettings, … })`. */
export const channelSettings = {
  enabled: z.boolean().default(true),
  /** Where texts go when nobody says where. */
  defaultTo: z.string().min(1).optional(),
  /** Another server than the platform's own. */
  baseUrl: z.url().optional(),
  /** Characters of one message, below the platform's limit. */
  textChunkLimit: z.int().min(50).max(40_000).optional(),
};

export const channelsSchema = z
  .looseObject({
    /** Modules that bring platforms of their own: paths relative to the configuration file. */
    plugins: z.array(z.string().min(1)).default([]),
    /** Which configured platform `last` falls back to first. */
    order: z.array(z.string()).optional(),
  })
  .prefault({});
/** Platform sections are checked by their own schemas. */
export type ChannelsConfig = z.output<typeof channelsSchema>;
