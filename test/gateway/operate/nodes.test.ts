import { expect, test } from "bun:test";
import type { NodeStatus } from "../../../src/gateway/database/peers.ts";
import { configurations, differences } from "../../../src/gateway/operate/nodes.ts";

const node = (number: number, digest: string, digestAt: number): NodeStatus => ({
  number,
  name: "host",
  version: "1.2.3",
  digest,
  digestAt,
  startedAt: 0,
  seenAt: 0,
  leads: [],
});

test("configurations that differ for a minute are a finding, and a change that spreads within it is not", () => {
  const nodes = [node(1, "aa", 0), node(2, "bb", 50_000), node(3, "aa", 10_000)];
  expect(configurations(nodes)).toEqual(
    new Map([
      ["aa", 2],
      ["bb", 1],
    ]),
  );
  expect(differences(nodes, 109_999)).toEqual([]);
  expect(differences(nodes, 110_000)).toMatchObject([
    { id: "configurations-differ", message: expect.stringContaining("host#1 has aa, host#2 has bb, host#3 has aa") },
  ]);
  expect(differences([node(1, "aa", 0), node(2, "aa", 0)], 110_000)).toEqual([]);
  expect(differences([], 110_000)).toEqual([]);
});
