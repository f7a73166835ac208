/**
 * Who holds a lease: a process, told apart from others by its machine, number and start. A process that is no more
 * gives up its leases at once; where that cannot be known, they run out.
 */
import { hostname } from "node:os";

/** A name for this process, with an id for each worker in it. */
export const makeOwner = (): string => [hostname(), process.pid, performance.timeOrigin, crypto.randomUUID()].join("/");

/** Whether an owner's process is known to have ended. */
export function isGone(owner: string): boolean {
  const [host, pid, startedAt] = owner.split("/");
  if (host !== hostname() || !/^\d+$/.test(pid ?? "")) return false;
  if (Number(pid) === process.pid) return Number(startedAt) !== performance.timeOrigin;
  try {
    process.kill(Number(pid), 0); // sends nothing
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH"; // EPERM: there is one, of another user
  }
}
