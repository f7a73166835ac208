/**
 * Checks which configured platforms answer and accept our credentials. For diagnosis; sending does not depend on it.
 */
import { inTime, messageOf } from "../../base/index.ts";
import type { Channel, Health } from "./channel.ts";

const TIMEOUT_MS = 10_000;

export interface ChannelHealth {
  readonly id: string;
  readonly health: Health;
}

/** Sends a harmless request to each platform, all at once. Never throws. */
export function checkChannels(
  channels: ReadonlyMap<string, Channel>,
  { timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<ChannelHealth[]> {
  const check = async (channel: Channel): Promise<ChannelHealth> => {
    const { id } = channel;
    const stop = new AbortController();
    const late = (): Health => ({ ok: false, reason: `${id}: no answer in time` });
    try {
      // a plugin may throw, or ignore the signal
      return { id, health: await inTime(channel.check(stop.signal), { ms: timeoutMs, late }) };
    } catch (error) {
      return { id, health: { ok: false, reason: `${id}: ${messageOf(error)}` } };
    } finally {
      stop.abort();
    }
  };
  return Promise.all([...channels.values()].map(check));
}
