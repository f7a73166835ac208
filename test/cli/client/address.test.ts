import { describe, expect, test } from "bun:test";
import { clientSettings } from "../../../src/cli/client/address.ts";

const urlOf = (env: Record<string, string>): string => clientSettings({ env, flags: {}, home: "/nowhere" }).server.url;

describe.each(["HEARTH_HOST", "OLLAMA_HOST"])("the server that %s names", (name) => {
  test.each([
    ["box", "http://box:11434"],
    ["0.0.0.0:8080", "http://127.0.0.1:8080"],
    ["https://box", "https://box"],
    ["https://box:8443/", "https://box:8443"],
    ["http://box/models/", "http://box/models"],
    // quoted as in files of variables: the server accepts it, too
    ['"https://box"', "https://box"],
    ["'http://box/models' ", "http://box/models"],
    ["HTTPS://box", "HTTPS://box"],
  ])("is for %p %p", (value, url) => {
    expect(urlOf({ [name]: value })).toBe(url);
  });
});

test("an empty HEARTH_HOST says nothing", () => {
  expect(urlOf({ HEARTH_HOST: " ", OLLAMA_HOST: "https://box" })).toBe("https://box");
});
