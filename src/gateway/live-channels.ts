/**
 * The configured channels as they are now: loaded at the start, and again whenever the configuration changes. What is
 * wrong with one of them is logged and leaves the others alone.
 */
import type { Logger } from "../base/log.ts";
import type { Channel, ChannelDeps } from "../channels/channel.ts";
import { loadKinds, makeChannels } from "../channels/load.ts";
import { findChannelId, takesRecipient, type Directory } from "../channels/resolve.ts";
import { describePath } from "../config/document.ts";
import type { Channels } from "../hooks/ingress/checks.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

export interface LiveChannelsDeps extends Pick<ChannelDeps, "fetch" | "now"> {
  readonly log: Logger;
}

export class LiveChannels {
  readonly #deps: LiveChannelsDeps;
  #directory: Directory = { channels: new Map(), kinds: [] };
  #loads = 0;

  constructor(deps: LiveChannelsDeps) {
    this.#deps = deps;
  }

  /** Takes the channels of a snapshot; of two loads at once the later counts. */
  async load({ channels: config, folder, where }: GatewaySnapshot): Promise<void> {
    const load = ++this.#loads;
    const { kinds, problems } = await loadKinds(config, { folder });
    if (load !== this.#loads) return;
    const made = makeChannels(config, kinds, { ...this.#deps, folder });
    this.#directory = { channels: made.channels, kinds, order: config.order };
    for (const { path, message } of [...problems, ...made.problems]) {
      this.#deps.log.warn("a channel cannot be used", {
        key: describePath(path),
        where: where(path),
        problem: message,
      });
    }
  }

  get directory(): Directory {
    return this.#directory;
  }

  /** By id. */
  get channels(): ReadonlyMap<string, Channel> {
    return this.#directory.channels;
  }

  /** For who checks what a request asks for. */
  get names(): Channels {
    const { kinds, channels } = this.#directory;
    return {
      ids: kinds.map(({ id }) => id),
      find: (name) => {
        const id = findChannelId(kinds, name);
        if (id === undefined) return undefined;
        const channel = channels.get(id);
        const takes = (to: string): boolean => channel !== undefined && takesRecipient(channel, to);
        return { id, isConfigured: channel !== undefined, takes };
      },
    };
  }
}
