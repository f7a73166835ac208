/**
 * Checks which configured platforms answer and accept our credentials. For diagnosis; sending does not depend on it.
 */
import { messageOf } from "../../base/index.ts";
import type { Channel, Health } from "./channel.ts";

const TIMEOUT_MS = 10_000;

export interface ChannelHealth {
  readonly id: string;
  readonly health: Health;
}

/** Sends a harmless request to all of them at once. Never throws. */
export function checkChannels(
  channels: ReadonlyMap<string, Channel>,
  { timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<ChannelHealth[]> {
  const check = async (channel: Channel): Promise<ChannelHealth> => {
    const stop = AbortSignal.timeout(timeoutMs);
    // a plugin may throw, or ignore the signal
    const late = Promise.withResolvers<Health>();
    const giveUp = (): void => late.resolve({ ok: false, reason: `${channel.id}: no answer in time` });
    stop.addEventListener("abort", giveUp, { once: true });
    try {
      return { id: channel.id, health: await Promise.race([channel.check(stop), late.promise]) };
    } catch (error) {
      return { id: channel.id, health: { ok: false, reason: `${channel.id}: ${messageOf(error)}` } };
    } finally {
      stop.removeEventListener("abort", giveUp);
    }
  };
  return Promise.all([...channels.values()].map(check));
}
