/** Host names that a browser can send, and forms that only other clients send, over real sockets and behind nginx. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { hasNginx, startNginx } from "../../e2e/nginx.ts";
import { makeHarness, type Harness } from "../harness.ts";

setDefaultTimeout(60_000);

/** Header lines; every route needs a name of this server. */
const FOREIGN: readonly (readonly string[])[] = [
  ["Host: evil.example"],
  ["Host: evil.example:PORT"],
  ["Host: EVIL.example"],
  ["Host: evil.example."],
  ["Host: localhost.evil.example"],
  ["Host: 127.0.0.1.evil.example"],
  ["Host: 127.0.0.1.nip.io:PORT"],
  ["Host: evil.example.localhost.evil.example"],
  ["Host: evillocalhost"],
  ["Host: localhost:1@evil.example"],
  ["Host: evil.example@localhost"],
  ["Host: localhost:80.evil.example"],
  ["Host: localhost:80:90"],
  ["Host: localhost/evil.example"],
  ["Host: localhost\\evil.example"],
  ["Host: localhost?evil.example"],
  ["Host: localhost#evil.example"],
  ["Host: localhost evil.example"],
  ["Host: localhost, evil.example"],
  ["Host: localhost", "Host: evil.example"],
  ["Host: evil.example", "Host: localhost"],
  ["Host:"],
  ["Host: :PORT"],
  ["Host: ."],
  ["Host: .localhost.evil"],
  ["Host: *"],
  ["Host: *.evil.example"],
  ["Host: 2130706433"],
  ["Host: 0x7f000001"],
  ["Host: 0177.0.0.1"],
  ["Host: 127.1"],
  ["Host: [::ffff:127.0.0.1]"],
  ["Host: [::ffff:7f00:1]:PORT"],
  ["Host: [0:0:0:0:0:ffff:127.0.0.1]"],
  ["Host: [fe80::1%25eth0]"],
  ["Host: [::1"],
  ["Host: ::1]"],
  ["Host: [::1]evil.example"],
  ["Host: [evil.example]"],
  ["Host: nas-of-others.local"],
  ["Host: evil.internal"],
  ["Host: xn--lcalhost-n4a"],
  ["Host: l\u00f6calhost"],
  ["Host: loc\u00adalhost"],
  ["Host: %6cocalhost"],
  [`Host: ${"a".repeat(253)}`],
  [`Host: ${"a.".repeat(4000)}localhost`],
  ["Host: evil.example", "X-Forwarded-Host: localhost"],
  ["Host: evil.example", "Forwarded: host=localhost"],
  ["Host: evil.example:PORT", "Origin: http://evil.example:PORT"],
  ["Host: evil.example", "Origin: http://localhost"],
];

const FOREIGN_ORIGINS: readonly string[] = [
  "http://evil.example",
  "http://localhost.evil.example",
  "http://localhost:80.evil.example",
  "http://localhost:1@evil.example",
  "http://localhost@evil.example",
  "http://localhost:80/evil.example",
  "http://127.0.0.1.evil.example",
  "https://[::1].evil.example",
  "http://evillocalhost",
  "http://localhost, http://evil.example",
  "http://nas-of-others.local",
  "chrome-extension://abc",
  "null",
];

const [lan] = Object.values(networkInterfaces())
  .flatMap((cards) => cards ?? [])
  .filter(({ internal, family }) => !internal && family === "IPv4")
  .map(({ address }) => address);

interface Case {
  readonly listen: string;
  readonly connect: string;
}

const cases: Case[] = [
  { listen: "127.0.0.1", connect: "127.0.0.1" },
  { listen: "::1", connect: "::1" },
  { listen: "0.0.0.0", connect: "127.0.0.1" },
  { listen: "::", connect: "::1" },
  ...(lan === undefined ? [] : [{ listen: lan, connect: lan }]),
];

/** @returns the status; 0: the connection was closed without an answer */
function status(at: { host: string; port: number }, lines: readonly string[], target = "/api/tags"): Promise<number> {
  const head = [`GET ${target} HTTP/1.1`, ...lines, "Connection: close", "", ""].join("\r\n");
  return new Promise((resolve, reject) => {
    let got = "";
    const socket = connect(at, () => socket.write(head.replaceAll("PORT", String(at.port)), "latin1"));
    socket.setTimeout(20_000, () => socket.destroy(new Error(`no answer to ${head}`)));
    socket.on("data", (data) => (got += data.toString("latin1")));
    socket.on("error", reject);
    socket.on("close", () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(got)?.[1] ?? 0)));
  });
}

const own = (address: string): string => (address.includes(":") ? `[${address}]` : address);

describe.each(cases)("a server without keys that listens on $listen", ({ listen, connect: host }) => {
  let harness: Harness;
  let port: number;
  beforeAll(async () => {
    harness = await makeHarness({ host: { hostname: listen, port: 0 } });
    port = Number(new URL(harness.listen().url).port);
  });
  afterAll(() => harness.close());

  test("answers to its own names", async () => {
    for (const name of ["localhost", "LocalHost:PORT", "app.localhost", own(host), `${own(host)}:PORT`]) {
      expect([name, await status({ host, port }, [`Host: ${name}`])]).toEqual([name, 200]);
    }
  });

  test.each(FOREIGN.map((lines) => [lines.join(" + ").slice(0, 60), lines] as const))(
    "refuses %s",
    async (_, lines) => {
      for (const target of ["/api/tags", "/v1/models", "/metrics", "/ui", "/health", "/"]) {
        expect([target, [400, 403, 431, 0].includes(await status({ host, port }, lines, target))]).toEqual([
          target,
          true,
        ]);
      }
    },
  );

  test.each(FOREIGN_ORIGINS)("refuses a page of %s", async (origin) => {
    expect(await status({ host, port }, ["Host: localhost", `Origin: ${origin}`])).toBe(403);
  });
});

describe.skipIf(!hasNginx)("behind nginx", () => {
  let harness: Harness;
  let address: string;
  beforeAll(async () => {
    harness = await makeHarness({ hosts: ["models.example"] });
    address = harness.listen().url;
  });
  afterAll(() => harness.close());

  test.each([
    ["as it comes", "location / { proxy_pass URL; }", "/api/tags", "any.example", 200],
    ["below a path", "location /hearth/ { proxy_pass URL/; }", "/hearth/api/tags", "any.example", 200],
    [
      "that hands on an allowed name",
      "location / { proxy_pass URL; proxy_set_header Host $host; }",
      "/api/tags",
      "models.example",
      200,
    ],
    [
      "that hands on another",
      "location / { proxy_pass URL; proxy_set_header Host $host; }",
      "/api/tags",
      "any.example",
      403,
    ],
  ])("%s", async (_, text, target, name, expected) => {
    const nginx = await startNginx(text.replace("URL", address));
    try {
      expect(await status({ host: "127.0.0.1", port: nginx.port }, [`Host: ${name}`], target)).toBe(expected);
      const forwarded = [`Host: ${name}`, "X-Forwarded-Host: localhost"];
      expect(await status({ host: "127.0.0.1", port: nginx.port }, forwarded, target)).toBe(expected);
    } finally {
      await nginx.stop();
    }
  });
});
