/**
 * The owner of a lease is a worker of a process. `gateway.lock` gives the database to one process at a time, so every
 * other process that has held a lease in it has ended; no process number is looked at, which in containers come again.
 */
import { hostname } from "node:os";

const thisProcess = (): string => [hostname(), process.pid, performance.timeOrigin].join("/");

/** A name for a worker of this process. */
export const makeOwner = (): string => `${thisProcess()}/${crypto.randomUUID()}`;

/** Whether an owner was a worker of a process that has ended. */
export const isGone = (owner: string): boolean => !owner.startsWith(`${thisProcess()}/`);
