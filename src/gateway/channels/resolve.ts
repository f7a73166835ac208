/**
 * Resolves a reply's target. `last` is the main session's most recent conversation; a recipient belongs to its platform
 * and is never tried on another.
 */
import { messageOf } from "../../base/index.ts";
import type { Channel, ChannelKind, Target } from "./channel.ts";
import { CHANNEL_ORDER } from "./index.ts";

export interface Directory {
  /** Configured channels by id. */
  readonly channels: ReadonlyMap<string, Channel>;
  /** Used to resolve aliases. */
  readonly kinds: readonly ChannelKind[];
  /** Fallback order of `last`. */
  readonly order?: readonly string[] | undefined;
  /** Ids of configured channels that are unusable. */
  readonly unusable?: ReadonlySet<string> | undefined;
}

export interface TargetRequest {
  /** `last`, a channel's id, or an alias. */
  readonly channel: string;
  readonly to?: string | undefined;
  /** The main session's most recent conversation. */
  readonly last?: Target | undefined;
}

/** The id of an id or alias; undefined if no platform has it. `last` is not a platform. */
export function findChannelId(kinds: readonly ChannelKind[], name: string): string | undefined {
  const word = name.trim().toLowerCase();
  return kinds.find(({ id, aliases }) => id === word || aliases.includes(word))?.id;
}

/** True if the name means the main session's most recent conversation. */
export const isLast = (name: string): boolean => name.trim().toLowerCase() === "last";

export interface ChannelStanding {
  readonly id: string;
  readonly isConfigured: boolean;
  /** True if the channel has a default recipient. */
  readonly hasDefault: boolean;
  /** True if a text is a valid recipient there; false if the channel is not configured. */
  takes(to: string): boolean;
}

/** Every name that a configuration may use for a channel; `last` stands for its fallback, if there is one. */
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

export function takesRecipient(channel: Channel, to: string): boolean {
  try {
    channel.parseTarget(to);
    return true;
  } catch {
    return false; // sending reports the reason
  }
}

/** A target, or the reason to display why there is no target. */
export function resolveTarget(
  directory: Directory,
  { channel, to, last }: TargetRequest,
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

/** The reason why a channel is missing. Senders may read it; errors in its settings are only logged. */
export const whyMissing = ({ unusable }: Pick<Directory, "unusable">, id: string): string =>
  `channel '${id}' ${unusable?.has(id) ? "cannot be used as it is configured" : "is not configured"}`;

/**
 * The last channel if it is still configured; otherwise the first one in order that accepts `to`, or, without `to`, has
 * a `defaultTo`; otherwise the first one.
 */
function lastChannel(
  { channels, kinds, order = [] }: Directory,
  { last, to }: Pick<TargetRequest, "last" | "to"> = {},
): string | undefined {
  if (last && channels.has(last.channel)) return last.channel;
  const preferred = order.map((name) => findChannelId(kinds, name) ?? name);
  const listed = [...preferred, ...CHANNEL_ORDER, ...[...channels.keys()].toSorted()];
  const configured = listed.flatMap((id) => channels.get(id) ?? []);
  const hasRecipient = (channel: Channel): boolean =>
    to === undefined ? channel.defaultTo !== undefined : takesRecipient(channel, to);
  return (configured.find(hasRecipient) ?? configured[0])?.id;
}
