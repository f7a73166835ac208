/** An outbox over a database in a temporary folder, with channels to stand-ins of their platforms. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alone } from "../../../src/gateway/database/peers.ts";
import { makeLogger } from "../../../src/base/log.ts";
import type { Store } from "../../../src/gateway/database/store.ts";
import type { Channel, ChannelKind, SendOutcome, SendRequest } from "../../../src/gateway/channels/channel.ts";
import { channelsSchema } from "../../../src/gateway/channels/config.ts";
import { loadKinds, makeChannels } from "../../../src/gateway/channels/load.ts";
import { Outbox, type OutboxDeps } from "../../../src/gateway/channels/outbox/outbox.ts";
import { outboxMigrations } from "../../../src/gateway/channels/outbox/tables.ts";
import { openStore } from "../../stores.ts";

export interface Box {
  readonly store: Store;
  readonly outbox: Outbox;
  readonly path: string;
  /** Another outbox over the same file, as after a restart. */
  again(more?: Partial<OutboxDeps>): Outbox;
  remove(): Promise<void>;
}

export function makeBox(channels: readonly Channel[], more: Partial<OutboxDeps> = {}): Box {
  const folder = mkdtempSync(join(tmpdir(), "hearth-outbox-"));
  const path = join(folder, "gateway.db");
  const store = openStore(outboxMigrations, path);
  const log = makeLogger({ write: () => {}, now: Date.now, debug: false });
  const byId = new Map(channels.map((channel) => [channel.id, channel]));
  const parts = { store, peers: alone(), channels: () => byId, now: Date.now, log };
  const deps: OutboxDeps = { ...parts, random: () => 0, ...more };
  return {
    store,
    path,
    outbox: new Outbox(deps),
    again: (other = {}) => new Outbox({ ...deps, ...other }),
    async remove() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A channel in this process: the script answers every send. */
export function scripted(
  script: (request: SendRequest) => SendOutcome | Promise<SendOutcome>,
  more: Partial<Channel> = {},
): Channel {
  return {
    id: "scripted",
    chunkLimit: 50,
    chunkUnit: "utf16",
    dedupeMs: 0,
    spacingMs: 0,
    parseTarget: (to) => ({ channel: "scripted", to }),
    send: async (request) => script(request),
    check: async () => ({ ok: true }),
    ...more,
  };
}

export async function kindsOf(plugins: readonly string[] = [], folder = "/"): Promise<readonly ChannelKind[]> {
  const { kinds } = await loadKinds(channelsSchema.parse({ plugins }), { folder });
  return kinds;
}

/** Channels from sections of a configuration. */
export async function channelsFrom(sections: Record<string, unknown>): Promise<ReadonlyMap<string, Channel>> {
  const config = channelsSchema.parse({ plugins: ["mattermost"], ...sections });
  const { channels, problems } = makeChannels(config, await kindsOf(["mattermost"]), {
    fetch,
    folder: "/",
    now: Date.now,
  });
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return channels;
}
