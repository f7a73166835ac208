import { expect, test } from "bun:test";
import { reachHereDirectly } from "../../../src/base/config/proxies.ts";

test.each([
  [{}, undefined],
  [{ NO_PROXY: "a.b" }, undefined],
  [{ HTTP_PROXY: "http://p:1" }, "localhost,127.0.0.1,::1"],
  [{ https_proxy: "http://p:1", NO_PROXY: "a.b, localhost," }, "a.b,localhost,127.0.0.1,::1"],
  [{ http_proxy: "http://p:1", no_proxy: "c.d", NO_PROXY: "a.b" }, "c.d,localhost,127.0.0.1,::1"],
  [{ http_proxy: "http://p:1", no_proxy: "", NO_PROXY: "*" }, "*,localhost,127.0.0.1,::1"],
] as [Record<string, string>, string | undefined][])(
  "with %j, the server reaches this machine without a proxy",
  (asked, hosts) => {
    const env = { ...asked };
    reachHereDirectly(env);
    expect(env).toEqual(hosts === undefined ? asked : { ...asked, NO_PROXY: hosts, no_proxy: hosts });
  },
);
