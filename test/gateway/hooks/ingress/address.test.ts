import { describe, expect, test } from "bun:test";
import { isNetwork, parseNetworks } from "../../../../src/base/networks.ts";
import { clientAddress, failureKey, publicUrl } from "../../../../src/gateway/hooks/ingress/address.ts";

const trusted = parseNetworks(["127.0.0.1", "10.0.0.0/8", "fd00::/8", "not a network", "10.0.0.0/99"]);
const from = (peer: string | undefined, forwardedFor: string | null = null): string =>
  clientAddress({ peer, forwardedFor, trusted });

describe("the address of a client:", () => {
  test.each([
    ["1.2.3.4", "1.2.3.4"],
    ["::ffff:1.2.3.4", "1.2.3.4"],
    ["::ffff:102:304", "1.2.3.4"],
    ["::FFFF:1.2.3.4%eth0", "1.2.3.4"],
    ["2001:DB8::1", "2001:db8:0:0:0:0:0:1"],
    ["::1", "0:0:0:0:0:0:0:1"],
    ["fe80::1%eth0", "fe80:0:0:0:0:0:0:1"],
    [undefined, "unknown"],
    ["", "unknown"],
    ["nonsense", "unknown"],
  ])("%p is %s", (peer, expected) => {
    expect(from(peer)).toBe(expected);
  });

  test("X-Forwarded-For of an untrusted peer is ignored", () => {
    expect(from("9.9.9.9", "1.2.3.4")).toBe("9.9.9.9");
  });

  test.each([
    ["1.2.3.4", "1.2.3.4"],
    ["6.6.6.6, 1.2.3.4", "1.2.3.4"],
    ["6.6.6.6, 1.2.3.4, 10.1.1.1", "1.2.3.4"],
    ["1.2.3.4:5678", "1.2.3.4"],
    ["[2001:db8::1]:443", "2001:db8:0:0:0:0:0:1"],
    ["::ffff:10.0.0.7", "10.0.0.7"],
    ["10.0.0.9, fd00::1", "10.0.0.9"],
    ["1.2.3.4, unknown", "127.0.0.1"],
    ["", "127.0.0.1"],
    [",,,", "127.0.0.1"],
    [`${"1.1.1.1,".repeat(10_000)}2.2.2.2`, "2.2.2.2"],
  ])("with X-Forwarded-For %p behind trusted proxies it is %s, the last untrusted one", (header, expected) => {
    expect(from("127.0.0.1", header)).toBe(expected);
  });

  test("failures are counted per /64 network of IPv6, and per address of IPv4", () => {
    expect(failureKey(from("2001:db8:1:2:3::4"))).toBe("2001:db8:1:2::/64");
    expect(failureKey(from("2001:db8:1:2:ffff::"))).toBe("2001:db8:1:2::/64");
    expect(failureKey(from("1.2.3.4"))).toBe("1.2.3.4");
    expect(failureKey("unknown")).toBe("unknown");
  });
});

test.each([
  ["10.0.0.0/8", true],
  ["::1", true],
  ["fd00::/128", true],
  ["10.0.0.0/33", false],
  ["::/129", false],
  ["10.0.0.0/", false],
  ["10.0.0.0/8/8", false],
  ["proxy.example", false],
  ["", false],
])("%p is a network address: %p", (text, expected) => {
  expect(isNetwork(text)).toBe(expected);
});

describe("the requested URL:", () => {
  const asked = (peer: string | undefined, headers: Record<string, string>): string =>
    publicUrl({ url: new URL("http://inside:9000/hooks/a?q=1"), headers: new Headers(headers), peer, trusted });
  const https = { "x-forwarded-proto": "https" };

  test.each([
    ["127.0.0.1", https, "https://inside:9000/hooks/a?q=1"],
    ["unix", { ...https, "x-forwarded-host": "hooks.example.org" }, "https://hooks.example.org/hooks/a?q=1"],
    ["::ffff:10.1.2.3", { "x-forwarded-host": "a.example:8443, b.example" }, "http://a.example:8443/hooks/a?q=1"],
    ["fd00::1", { "x-forwarded-proto": "HTTPS, http" }, "https://inside:9000/hooks/a?q=1"],
    ["127.0.0.1", {}, "http://inside:9000/hooks/a?q=1"],
    ["127.0.0.1", { "x-forwarded-proto": "gopher", "x-forwarded-host": "a b" }, "http://inside:9000/hooks/a?q=1"],
    ["127.0.0.1", { "x-forwarded-host": "u:p@a.example/x" }, "http://a.example/hooks/a?q=1"],
  ] as const)("with trusted proxy %p and headers %p it is %s", (peer, headers, expected) => {
    expect(asked(peer, headers)).toBe(expected);
  });

  test.each(["9.9.9.9", undefined, "nonsense"])(
    "the forwarding headers of the untrusted peer %p are ignored",
    (peer) => {
      expect(asked(peer, { ...https, "x-forwarded-host": "a.example" })).toBe("http://inside:9000/hooks/a?q=1");
    },
  );
});
