/** The mappings of a configuration that can change: parsed once for each snapshot. */
import type { HooksConfig } from "../config.ts";
import { makeMappings, type Mappings } from "./index.ts";

export interface MappingSettings {
  readonly hooks: HooksConfig;
  /** Of the configuration file: relative paths start there. */
  readonly folder: string;
}

export type MappingsOf = (settings: MappingSettings) => Mappings;

export function makeMappingsOf(): MappingsOf {
  const parsed = new WeakMap<HooksConfig, Mappings>();
  return (settings) => {
    const found = parsed.get(settings.hooks) ?? makeMappings(settings);
    parsed.set(settings.hooks, found);
    return found;
  };
}
