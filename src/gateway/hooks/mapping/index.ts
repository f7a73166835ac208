/**
 * The mappings of a configuration: first an operator's own in order, then the presets'. The first that takes a request
 * owns it.
 */
import { resolve } from "node:path";
import { withoutUndefined } from "../without-undefined.ts";
import { type HooksConfig, type MappingConfig, mappingSchema, type PresetName } from "../config.ts";
import { presets } from "./presets/index.ts";
import type { Preset } from "./presets/preset.ts";
import { makeMapping, type Mapping } from "./mapping.ts";
import type { MappingRequest } from "./request.ts";

export type { Mapping } from "./mapping.ts";
export { deliveryIdOf, repeatId, RESERVED } from "./mapping.ts";
export type { MappingRequest } from "./request.ts";
export { type MappingOutcome, runMapping, type RunParts } from "./run.ts";

/** Default, relative to the configuration file. */
const TRANSFORMS_DIR = "hooks/transforms";

export interface Mappings {
  readonly all: readonly Mapping[];
  /** Absolute folder of transforms. */
  readonly transformsDir: string;
  readonly transformTimeoutMs: number;
  /** Mappings that may take a request of this path, before its body is read. */
  forPath(path: string): readonly Mapping[];
  /** Throws `too_large` if a condition cannot search all of a text. */
  find(request: MappingRequest): Mapping | undefined;
}

/**
 * Never throws: a mapping's error is in its `plan`.
 * @param folder of the configuration file
 */
export function makeMappings({ hooks, folder }: { hooks: HooksConfig; folder: string }): Mappings {
  const own = hooks.mappings.map((config, i) => makeMapping(config, { id: config.id ?? `mapping-${i + 1}` }));
  const taken = new Set(own.map(({ id }) => id));
  const brought = [...new Set(hooks.presets)].map((name) => {
    const config = presetMapping(name, hooks);
    const id = config.id ?? name;
    const { allEvents } = hooks.presetSettings[name] ?? {};
    return makeMapping(config, { id: taken.has(id) ? `preset-${id}` : id, preset: name, allEvents });
  });
  const all = [...own, ...brought];
  return {
    all,
    transformsDir: resolve(folder, hooks.transformsDir ?? TRANSFORMS_DIR),
    transformTimeoutMs: hooks.transformTimeoutMs,
    forPath: (path) => all.filter((mapping) => mapping.takesPath(path)),
    find: (request) => all.find((mapping) => mapping.takes(request)),
  };
}

/** A preset's mapping with the operator's overrides. */
function presetMapping(name: PresetName, hooks: HooksConfig): MappingConfig {
  const { mapping, scheme }: Preset = presets[name];
  const { secrets, match, allEvents: _, ...settings } = hooks.presetSettings[name] ?? {};
  const signed = secrets && scheme ? { auth: { scheme, secrets } } : {};
  const mail = name === "mail" ? mailSettings(hooks) : {};
  return {
    ...mappingSchema.parse({}),
    ...mapping,
    ...mail,
    ...signed,
    ...withoutUndefined(settings),
    match: { ...mapping.match, ...withoutUndefined(match ?? {}) },
  };
}

/** Settings that setup tools wrote for the mail preset yield to the operator's. */
function mailSettings({ mail }: HooksConfig): Partial<MappingConfig> {
  if (!mail) return {};
  const { allowUnsafeExternalContent, model, thinking } = mail;
  return withoutUndefined({ allowUnsafeExternalContent, model, thinking });
}
