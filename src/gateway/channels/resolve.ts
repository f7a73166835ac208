/**
 * Where a reply goes. `last` is the main session's most recent conversation; a recipient belongs to its platform
 * and is never tried on another.
 */
import { messageOf } from "../../base/index.ts";
import type { Channel, ChannelKind, Target } from "./channel.ts";
import { CHANNEL_ORDER } from "./index.ts";

export interface Directory {
  /** Those that are configured, by id. */
  readonly channels: ReadonlyMap<string, Channel>;
  /** For aliases. */
  readonly kinds: readonly ChannelKind[];
  /** What `last` falls back to first. */
  readonly order?: readonly string[] | undefined;
  /** Ids of those that are configured, and cannot be used so. */
  readonly unusable?: ReadonlySet<string> | undefined;
}

export interface Asked {
  /** `last`, a channel's id, or an alias of it. */
  readonly channel: string;
  readonly to?: string | undefined;
  /** The main session's most recent conversation. */
  readonly last?: Target | undefined;
}

/** The id behind an id or alias; undefined where no platform is called so. `last` is no platform. */
export function findChannelId(kinds: readonly ChannelKind[], name: string): string | undefined {
  const word = name.trim().toLowerCase();
  return kinds.find(({ id, aliases }) => id === word || aliases.includes(word))?.id;
}

/** Whether a configuration or request asks for the main session's most recent conversation. */
export const isLast = (name: string): boolean => name.trim().toLowerCase() === "last";

export interface ChannelStanding {
  readonly id: string;
  readonly isConfigured: boolean;
  /** Whether there is a recipient to fall back to. */
  readonly hasDefault: boolean;
  /** Whether a text is a recipient there; false where it is not configured. */
  takes(to: string): boolean;
}

/** Every name that a configuration may have for a channel; `last` is the one that it falls back to, if there is any. */
export function channelStandings(directory: Directory): ReadonlyMap<string, ChannelStanding> {
  const { channels, kinds } = directory;
  const lastId = lastChannel(directory);
  return new Map(
    kinds.flatMap(({ id, aliases }) => {
      const channel = channels.get(id);
      const standing: ChannelStanding = {
        id,
        isConfigured: channel !== undefined,
        hasDefault: channel?.defaultTo !== undefined,
        takes: (to) => channel !== undefined && takesRecipient(channel, to),
      };
      return [id, ...aliases, ...(id === lastId ? ["last"] : [])].map((name) => [name, standing] as const);
    }),
  );
}

/** Whether a text is a recipient of a channel, as the channel writes them. */
export function takesRecipient(channel: Channel, to: string): boolean {
  try {
    channel.parseTarget(to);
    return true;
  } catch {
    return false; // sending there reports the reason
  }
}

/** A target, or why there is none: a text for people. */
export function resolveTarget(
  directory: Directory,
  { channel, to, last }: Asked,
): Target | { readonly reason: string } {
  const { channels, kinds } = directory;
  const wantsLast = isLast(channel);
  const id = wantsLast ? lastChannel(directory, { last, to }) : findChannelId(kinds, channel);
  if (id === undefined) return { reason: wantsLast ? "no channel is configured" : `unknown channel '${channel}'` };
  const found = channels.get(id);
  if (!found) return { reason: whyMissing(directory, id) };
  if (to === undefined && last?.channel === id) return last;
  const recipient = to ?? found.defaultTo;
  if (recipient === undefined) {
    return { reason: `channel '${id}' needs a recipient: none was given, none is known, and it has no defaultTo` };
  }
  try {
    return found.parseTarget(recipient);
  } catch (error) {
    return { reason: messageOf(error) };
  }
}

/** Why there is no such channel. Senders may read it: what is wrong with its settings is in the log. */
export const whyMissing = ({ unusable }: Pick<Directory, "unusable">, id: string): string =>
  `channel '${id}' ${unusable?.has(id) ? "cannot be used as it is configured" : "is not configured"}`;

/**
 * The last channel where it is still configured. Otherwise the first in order that has a recipient: one that takes
 * `to`, or without it one with a `defaultTo`; where none has, the first.
 */
function lastChannel(
  { channels, kinds, order = [] }: Directory,
  { last, to }: Pick<Asked, "last" | "to"> = {},
): string | undefined {
  if (last && channels.has(last.channel)) return last.channel;
  const preferred = order.map((name) => findChannelId(kinds, name) ?? name);
  const listed = [...preferred, ...CHANNEL_ORDER, ...[...channels.keys()].toSorted()];
  const configured = listed.flatMap((id) => channels.get(id) ?? []);
  const hasRecipient = (channel: Channel): boolean =>
    to === undefined ? channel.defaultTo !== undefined : takesRecipient(channel, to);
  return (configured.find(hasRecipient) ?? configured[0])?.id;
}
