/**
 * Turns the section `channels` of the configuration into channels: imports plugins, and checks each platform's section
 * by its schema. An error in a platform's section disables that platform and is reported with its place.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { AppError, messageOf, nearest } from "../../base/index.ts";
import type { Channel, ChannelDeps, ChannelKind } from "./channel.ts";
import type { ChannelsConfig } from "./config.ts";
import { builtInChannels, shippedPlugins } from "./index.ts";
import { pluginTools, type ChannelPlugin } from "./plugin.ts";
import { findChannelId, type Directory } from "./resolve.ts";

/** Keys of the section that do not name a platform. */
const SHARED_KEYS: readonly string[] = ["plugins", "order"];

export interface ChannelProblem {
  /** Keys from the root of the configuration. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export interface LoadedKinds {
  readonly kinds: readonly ChannelKind[];
  readonly problems: readonly ChannelProblem[];
}

/** Built-in platforms and plugins. Never throws: an unusable plugin is a problem. */
export async function loadKinds(config: ChannelsConfig, { folder }: { folder: string }): Promise<LoadedKinds> {
  const kinds: ChannelKind[] = Object.values(builtInChannels);
  const problems: ChannelProblem[] = [];
  for (const [i, name] of config.plugins.entries()) {
    try {
      const kind = await importPlugin(name, folder);
      const taken = kinds.find((other) => namesOf(other).some((word) => namesOf(kind).includes(word)));
      if (taken) throw new AppError("bad_request", `its name is taken by '${taken.id}'`);
      kinds.push(kind);
    } catch (error) {
      const message = `the plugin '${name}' cannot be used: ${messageOf(error).slice(0, 500)}`;
      problems.push({ path: ["channels", "plugins", i], message });
    }
  }
  return { kinds, problems };
}

const namesOf = ({ id, aliases }: ChannelKind): readonly string[] => [id, ...aliases];

async function importPlugin(name: string, folder: string): Promise<ChannelKind> {
  const module: { default?: unknown } = await (shipped(name)?.() ?? importFile(name, folder));
  if (typeof module.default !== "function") {
    throw new AppError("bad_request", "expected a function as the default export");
  }
  const kind: unknown = (module.default as ChannelPlugin)(pluginTools);
  if (!isKind(kind)) throw new AppError("bad_request", "expected it to make { id, aliases, schema, make }");
  return kind;
}

const shipped = (name: string) => (Object.hasOwn(shippedPlugins, name) ? shippedPlugins[name] : undefined);

/** A changed file is loaded as a new module. */
async function importFile(name: string, folder: string): Promise<{ default?: unknown }> {
  if (!/[./\\]/.test(name)) {
    throw new AppError("bad_request", `expected a path, or one of ${Object.keys(shippedPlugins).join(", ")}`);
  }
  const path = resolve(folder, name);
  return import(`${path}?v=${statSync(path).mtimeMs}`);
}

function isKind(value: unknown): value is ChannelKind {
  const { id, aliases, schema, make } = (value ?? {}) as Partial<ChannelKind>;
  const isName = (name: unknown): boolean => typeof name === "string" && /^[a-z][a-z0-9-]{0,31}$/.test(name);
  return (
    [id, ...(Array.isArray(aliases) ? aliases : [undefined])].every(isName) &&
    !SHARED_KEYS.concat("last", "none").includes(String(id)) &&
    typeof schema?.safeParse === "function" &&
    typeof make === "function"
  );
}

export interface MadeChannels {
  /** By id. */
  readonly channels: ReadonlyMap<string, Channel>;
  /** Ids of enabled sections that are unusable. */
  readonly unusable: ReadonlySet<string>;
  readonly problems: readonly ChannelProblem[];
}

/** Makes the channels that are configured and enabled. */
export function makeChannels(config: ChannelsConfig, kinds: readonly ChannelKind[], deps: ChannelDeps): MadeChannels {
  const channels = new Map<string, Channel>();
  const unusable = new Set<string>();
  const problems = orderProblems(config, kinds);
  for (const [section, settings] of sectionsOf(config)) {
    const kind = kinds.find((each) => each.id === section);
    const found = kind ? sectionProblems(section, settings, kind) : [unknownSection(section, kinds)];
    problems.push(...found);
    if ((settings as { enabled?: unknown } | null)?.enabled === false) continue;
    if (found.length > 0) unusable.add(section);
    if (!kind || found.length > 0) continue;
    try {
      const channel = kind.make(kind.schema.parse(settings), deps);
      if (channel.defaultTo !== undefined) channel.parseTarget(channel.defaultTo);
      channels.set(section, channel);
    } catch (error) {
      unusable.add(section);
      problems.push({ path: ["channels", section], message: messageOf(error) });
    }
  }
  return { channels, unusable, problems };
}

export interface LoadedChannels extends Directory {
  readonly problems: readonly ChannelProblem[];
}

/** Loads channels, kinds and problems for `resolveTarget` and the outbox. Never throws. */
export async function loadChannels(config: ChannelsConfig, deps: ChannelDeps): Promise<LoadedChannels> {
  const { kinds, problems } = await loadKinds(config, deps);
  const { channels, unusable, problems: found } = makeChannels(config, kinds, deps);
  return { channels, kinds, order: config.order, unusable, problems: [...problems, ...found] };
}

/** Checks the sections of the built-in platforms, and the order, without making channels. */
export function channelProblems(config: ChannelsConfig): ChannelProblem[] {
  const kinds: readonly ChannelKind[] = Object.values(builtInChannels);
  const mayBePlugin = config.plugins.length > 0;
  const sections = sectionsOf(config).flatMap(([section, settings]) => {
    const kind = kinds.find((each) => each.id === section);
    if (kind) return sectionProblems(section, settings, kind);
    return mayBePlugin ? [] : [unknownSection(section, kinds)];
  });
  return mayBePlugin ? sections : [...sections, ...orderProblems(config, kinds)];
}

/**
 * Checks the sections of the plugins' platforms, and their names in the order. Does not report a plugin that cannot be
 * loaded: it disables its own platform, whose section cannot be checked.
 */
export async function pluginProblems(
  config: ChannelsConfig,
  { folder }: { folder: string },
): Promise<readonly ChannelProblem[]> {
  const { kinds, problems } = await loadKinds(config, { folder });
  const sections = sectionsOf(config).flatMap(([section, settings]) => {
    if (Object.hasOwn(builtInChannels, section)) return [];
    const kind = kinds.find((each) => each.id === section);
    if (kind) return sectionProblems(section, settings, kind);
    return problems.length > 0 ? [] : [unknownSection(section, kinds)];
  });
  return problems.length > 0 ? sections : [...sections, ...orderProblems(config, kinds)];
}

const sectionsOf = (config: ChannelsConfig): [string, unknown][] =>
  Object.entries(config).filter(([key]) => !SHARED_KEYS.includes(key));

function sectionProblems(section: string, settings: unknown, kind: ChannelKind): ChannelProblem[] {
  const parsed = kind.schema.safeParse(settings);
  if (parsed.success) return [];
  return parsed.problems.map(({ path, message }) => ({ path: ["channels", section, ...path], message }));
}

const orderProblems = ({ order = [] }: ChannelsConfig, kinds: readonly ChannelKind[]): ChannelProblem[] =>
  order.flatMap((name, i) =>
    findChannelId(kinds, name) === undefined
      ? [{ ...unknownSection(name, kinds), path: ["channels", "order", i] }]
      : [],
  );

function unknownSection(section: string, kinds: readonly ChannelKind[]): ChannelProblem {
  const path = ["channels", section];
  if (shipped(section)) {
    return { path, message: `is a plugin: name it in channels.plugins, as "${section}"` };
  }
  const meant = kinds.find(({ aliases }) => aliases.includes(section));
  const known = [...kinds.map(({ id }) => id), ...Object.keys(shippedPlugins)];
  if (meant) return { path, message: `unknown channel: expected '${meant.id}'` };
  const near = nearest(section, [...known, ...SHARED_KEYS]);
  const help = near === undefined ? `: expected one of ${known.join(", ")}` : `; did you mean '${near}'?`;
  return { path, message: `unknown channel${help}` };
}
