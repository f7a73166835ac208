/** The built-in platforms, and the order in which `last` falls back to them. */
import type { ChannelKind } from "./channel.ts";
import { discord } from "./discord.ts";
import { imessage } from "./imessage.ts";
import { msteams } from "./msteams.ts";
import type { ChannelPlugin } from "./plugin.ts";
import { signal } from "./signal.ts";
import { slack } from "./slack.ts";
import { telegram } from "./telegram.ts";
import { whatsapp } from "./whatsapp.ts";

export const builtInChannels = {
  whatsapp,
  telegram,
  discord,
  slack,
  signal,
  imessage,
  msteams,
} as const satisfies Record<string, ChannelKind>;

/** Shipped plugins by their names in `channels.plugins`. */
export const shippedPlugins: Readonly<Record<string, () => Promise<{ default: ChannelPlugin }>>> = {
  mattermost: () => import("./plugins/mattermost.ts"),
};

/** Other plugins follow, sorted by name. */
export const CHANNEL_ORDER: readonly string[] = [...Object.keys(builtInChannels), ...Object.keys(shippedPlugins)];
