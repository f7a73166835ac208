import { expect, test } from "bun:test";
import { parseListen } from "../../../src/gateway/hooks/listen.ts";

test.each([
  ["127.0.0.1:9000", { hostname: "127.0.0.1", port: 9000 }],
  [":9000", { hostname: "127.0.0.1", port: 9000 }],
  ["[::1]:9000", { hostname: "::1", port: 9000 }],
  ["unix:/run/hearth/hooks.sock", { unix: "/run/hearth/hooks.sock" }],
  [`unix:/${"x".repeat(106)}`, { unix: `/${"x".repeat(106)}` }],
])("%s is a listen address", (text, place) => {
  expect(parseListen(text)).toEqual(place);
});

test.each([
  "",
  "127.0.0.1",
  "9000",
  "::1:80",
  "http://127.0.0.1:9000",
  "127.0.0.1:99999",
  "unix:",
  "unix:hooks.sock",
  "unix:/run/",
  "unix:/a\0b",
  `unix:/${"x".repeat(107)}`,
])("%j is not a listen address", (text) => {
  expect(parseListen(text)).toBeUndefined();
});
