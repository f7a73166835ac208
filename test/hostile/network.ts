/**
 * A network namespace whose processes reach this machine by two links, one of which can be cut silently. Needs root on
 * Linux, with iproute2.
 */
import { readdirSync } from "node:fs";

const ip = Bun.which("ip", { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` });

/** A pair of addresses: one end here, the other one there. */
interface Line {
  readonly here: string;
  readonly there: string;
  readonly device: string;
}

export interface Network {
  /** The link that always works. */
  readonly front: Line;
  /** The link that is cut. */
  readonly back: Line;
  /** A command that runs there. */
  inside(command: readonly string[]): string[];
  cut(): void;
  mend(): void;
  remove(): void;
}

function run(...args: string[]): void {
  const { success, stderr } = Bun.spawnSync([ip!, ...args]);
  if (!success) throw new Error(`ip ${args.join(" ")}: ${stderr.toString()}`);
}

export function makeNetwork(): Network {
  const taken = new Set(readdirSync("/sys/class/net"));
  const place = Array.from({ length: 250 }, (_, i) => i + 1).find((n) => !taken.has(`hearth-f${n}`))!;
  const name = `hearth-${place}`;
  const line = (kind: "f" | "b", net: number): Line => ({
    device: `hearth-${kind}${place}`,
    here: `10.${net}.${place}.1`,
    there: `10.${net}.${place}.2`,
  });
  const front = line("f", 213);
  const back = line("b", 214);
  const remove = (): void => run("netns", "del", name); // its devices are removed with it
  run("netns", "add", name);
  try {
    run("-n", name, "link", "set", "lo", "up");
    for (const { device, here, there } of [front, back]) {
      run("link", "add", device, "type", "veth", "peer", "name", "far", "netns", name);
      run("-n", name, "link", "set", "far", "name", device);
      run("addr", "add", `${here}/24`, "dev", device);
      run("-n", name, "addr", "add", `${there}/24`, "dev", device);
      run("link", "set", device, "up");
      run("-n", name, "link", "set", device, "up");
    }
  } catch (error) {
    remove();
    throw error;
  }
  return {
    front,
    back,
    inside: (command) => [ip!, "netns", "exec", name, ...command],
    cut: () => run("link", "set", back.device, "down"),
    mend: () => run("link", "set", back.device, "up"),
    remove,
  };
}
