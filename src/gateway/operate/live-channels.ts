/**
 * The channels of the current configuration: loaded at the start, and again whenever the configuration changes. A
 * broken channel is logged and leaves the others alone; if it worked before, its old settings stay in force.
 */
import type { Logger } from "../../base/index.ts";
import type { Channel, ChannelDeps } from "../channels/channel.ts";
import { loadKinds, makeChannels } from "../channels/load.ts";
import { findChannelId, takesRecipient, whyMissing, type Directory } from "../channels/resolve.ts";
import { describePath } from "../../base/config/index.ts";
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

  /** Loads the channels of a snapshot; of concurrent loads the later one counts. */
  async load({ channels: config, folder, where }: GatewaySnapshot): Promise<void> {
    const load = ++this.#loads;
    const { kinds, problems } = await loadKinds(config, { folder });
    if (load !== this.#loads) return;
    const made = makeChannels(config, kinds, { ...this.#deps, folder });
    const before = this.#directory;
    const stay = new Map([...before.channels].filter(([id]) => made.unusable.has(id)));
    this.#directory = {
      channels: new Map([...made.channels, ...stay]),
      // a plugin that is broken now may belong to a channel that stays
      kinds: [...kinds, ...before.kinds.filter(({ id }) => stay.has(id) && !kinds.some((kind) => kind.id === id))],
      order: config.order,
      unusable: made.unusable,
    };
    for (const { path, message } of [...problems, ...made.problems]) {
      const why = stay.has(String(path[1])) ? " as configured now: its old settings stay in force" : "";
      this.#deps.log.warn(`a channel cannot be used${why}`, {
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

  /** For the outbox. */
  readonly sending = {
    channels: () => this.channels,
    whyMissing: (id: string) => whyMissing(this.#directory, id),
  };

  /** For checks of requests. */
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
