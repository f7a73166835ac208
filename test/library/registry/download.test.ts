import { expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { startFront } from "./front.ts";
import { KB, makePlace, noise, publish } from "./place.ts";

/** Files of a folder that this process has open. */
const openIn = (folder: string): string[] =>
  readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)].filter((path) => path.startsWith(folder));
    } catch {
      return []; // the file has been closed meanwhile
    }
  });

test.skipIf(process.platform !== "linux")("aborted downloads leave no file open", async () => {
  const front = startFront();
  const place = await makePlace();
  try {
    const name = publish(front, "m", [noise(9000 * KB, 1)]);
    front.behaviour.interfere = ({ range }) =>
      Number(/=(\d+)/.exec(range ?? "")?.[1]) >= 8192 * KB ? new Promise<Response>(() => {}) : undefined;
    for (let left = 0; left < 3; left++) {
      const leaving = new AbortController();
      const pull = Array.fromAsync(place.pull(name, leaving.signal));
      setTimeout(() => leaving.abort(), 300); // its files are open by then
      await expect(pull).rejects.toMatchObject({ code: "cancelled" });
    }
    expect(openIn(join(place.root, "blobs"))).toEqual([]);
    front.behaviour.interfere = () => undefined;
    expect((await Array.fromAsync(place.pull(name))).at(-1)).toEqual({ status: "success" });
    expect(openIn(join(place.root, "blobs"))).toEqual([]);
  } finally {
    await front.stop();
    await place.close();
  }
});
