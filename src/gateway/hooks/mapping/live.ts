/** The mappings of a changing configuration: parsed once per snapshot. */
import type { HooksConfig } from "../config.ts";
import { makeMappings, type Mappings } from "./index.ts";

export interface MappingSettings {
  readonly hooks: HooksConfig;
  /** Folder of the configuration file, for relative paths. */
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
