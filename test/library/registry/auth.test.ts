import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { parseChallenge, parseToken } from "../../../src/library/registry/auth.ts";
import { parseAddress } from "../../../src/library/registry/address.ts";
import { putModel } from "../fixture.ts";
import { DOCKER_REGISTRY, startDockerRegistry } from "./docker-registry.ts";
import { startFront, type Front } from "./front.ts";
import { KB, makePlace, noise, publish, type Place } from "./place.ts";

let front: Front;
let place: Place;
beforeEach(async () => {
  front = startFront();
  place = await makePlace();
  front.behaviour.tokensFor = (await readFile(`${place.home}/id_ed25519.pub`, "utf8")).trim().split(" ")[1];
});
afterEach(async () => {
  await front.stop();
  await place.close();
});
const failureOf = (name: string) => Array.fromAsync(place.pull(name)).catch((error: unknown) => error);
const requestsTo = (path: string) => front.seen.filter((seen) => seen.path === path);

test("a registry with a token challenge gets a signed request, and one token serves the whole pull", async () => {
  front.behaviour.redirectBlobs = true;
  const name = publish(front, "m", [noise(300 * KB, 1), noise(KB, 2)]);
  expect((await Array.fromAsync(place.pull(name))).at(-1)).toEqual({ status: "success" });
  expect(requestsTo("/token").length).toBe(1);
  const toStorage = front.seen.filter(({ at }) => at === "storage");
  expect(toStorage.length).toBeGreaterThan(4);
  expect(toStorage.map(({ authorization }) => authorization).filter((value) => value !== null)).toEqual([]);
});

test("an expired token is renewed once for all connections", async () => {
  const name = publish(front, "m", [noise(600 * KB, 1)]);
  let expired: string | undefined;
  front.behaviour.interfere = (seen) => {
    if (!seen.path.includes("sha256:")) return undefined;
    expired ??= seen.authorization ?? "";
    if (seen.authorization !== expired || seen.range === "bytes=0-65535") return undefined;
    const challenge = `Bearer realm="http://${front.host}/token",service="front",scope="repository:a/b:pull repository:a/b:push"`;
    return new Response(null, { status: 401, headers: { "www-authenticate": challenge } });
  };
  expect((await Array.fromAsync(place.pull(name))).at(-1)).toEqual({ status: "success" });
  expect(requestsTo("/token").length).toBe(2);
});

test("an unknown key: access denied", async () => {
  front.behaviour.tokensFor = "AAAA";
  const name = publish(front, "m", [noise(KB, 1)]);
  expect(await failureOf(name)).toMatchObject({ code: "registry", message: "unauthorized: access denied" });
});

test("a registry that refuses its token: access denied, without further tries", async () => {
  front.behaviour.interfere = (seen) =>
    seen.path === "/token"
      ? undefined
      : new Response(null, {
          status: 401,
          headers: {
            "www-authenticate": `Bearer realm="http://${front.host}/token",service="front",scope="repository:a/b:pull repository:a/b:push"`,
          },
        });
  expect(await failureOf(`${front.host}/library/m`)).toMatchObject({ message: "unauthorized: access denied" });
  expect(requestsTo("/token").length).toBe(1);
});

test("a realm on another host gets no request", async () => {
  front.behaviour.realm = `http://${front.storageHost}/token`;
  const name = publish(front, "m", [noise(KB, 1)]);
  expect(await failureOf(name)).toMatchObject({
    code: "registry",
    message: `realm host "${front.storageHost}" does not match original host "${front.host}"`,
  });
  expect(front.seen.filter(({ at }) => at === "storage")).toEqual([]);
});

test("a redirect keeps the token on the same host, and drops it on another host", async () => {
  const name = publish(front, "m", [noise(KB, 1)]);
  front.behaviour.interfere = (seen) =>
    seen.path.includes("sha256:") && !seen.url.search && seen.at === "registry"
      ? new Response(null, { status: 307, headers: { location: `${seen.path}?moved=1` } })
      : undefined;
  expect((await Array.fromAsync(place.pull(name))).at(-1)).toEqual({ status: "success" });
  const moved = front.seen.filter(({ url }) => url.search === "?moved=1");
  expect(moved.map(({ authorization }) => authorization?.slice(0, 7))).toEqual(["Bearer ", "Bearer "]);
});

describe("challenges:", () => {
  const base = new URL("https://r.example/");
  const refused: [string, string | null, RegExp][] = [
    ["none", null, /^unauthorized: access denied$/],
    ["another scheme", 'Basic realm="x"', /^unauthorized: access denied$/],
    ["no realm", 'Bearer service="s"', /expected a realm/],
    ["a realm without https", 'Bearer realm="http://r.example/token"', /realm protocol "http:"/],
    ["another port", 'Bearer realm="https://r.example:444/token"', /realm host "r.example:444" does not match/],
  ];
  test.each(refused)("%s", (_, header, message) => {
    expect(() => parseChallenge(header, base)).toThrow(message);
  });

  test("a challenge has a realm, a service and every scope", () => {
    expect(parseChallenge('bearer realm="https://r.example/t?a=1", service="s x",scope="a b"', base)).toEqual({
      realm: new URL("https://r.example/t?a=1"),
      service: "s x",
      scopes: ["a", "b"],
    });
  });

  test.each(["", "null", "{}", '{"token":7}', '{"token":"a\\nb"}', `{"token":"${"x".repeat(40000)}"}`])(
    "an answer without a token that fits in a header is refused: %j",
    (text) => {
      expect(() => parseToken(text.slice(0, 50000), "r.example")).toThrow("r.example: expected a token");
    },
  );
});

describe("POST /api/pull and /api/push, insecure:", () => {
  const at = (text: string, insecure: boolean) => parseAddress(text, { insecure }).base.href;
  test("uses https without it, and http with it unless the name says https", () => {
    expect(at("m", false)).toBe("https://registry.ollama.ai/");
    expect(at("localhost:5000/a/m", false)).toBe("https://localhost:5000/");
    expect(at("localhost:5000/a/m", true)).toBe("http://localhost:5000/");
    expect(at("https://localhost:5000/a/m", true)).toBe("https://localhost:5000/");
  });
  const refused: [string, boolean, string][] = [
    ["http://localhost:5000/a/m", false, "insecure protocol http"],
    ["ftp://localhost/a/m", true, "expected a name with http or https, got protocol ftp"],
    ["localhost:99999/a/m", true, "invalid model name"],
    ["", false, "invalid model name"],
  ];
  test.each(refused)("%j with insecure %p", (text, insecure, message) => {
    expect(() => parseAddress(text, { insecure })).toThrow(message);
  });
});

describe("a user and a password", () => {
  const login = "anna:s3:cret";
  beforeEach(() => void (front.behaviour.tokensFor = undefined));
  const pullWith = async (source: string, more: { login?: string }): Promise<string> => {
    const own = await makePlace({}, true, { source: new URL(source), ...more });
    try {
      return (await Array.fromAsync(own.pull(publish(front, "m", [noise(3 * KB, 2)])))).at(-1)!.status;
    } finally {
      await own.close();
    }
  };
  const basic = `Basic ${btoa(login)}`;

  test("go to the configured source if it requires them, and to no other registry", async () => {
    front.behaviour.redirectBlobs = true;
    front.behaviour.interfere = ({ at, authorization }) =>
      at === "registry" && authorization !== basic
        ? new Response(null, { status: 401, headers: { "www-authenticate": 'Basic realm="x"' } })
        : undefined;
    expect(await pullWith(`http://${front.host}`, { login })).toBe("success");
    expect(front.seen.filter(({ at }) => at === "storage").map((seen) => seen.authorization)).not.toContain(basic);
    const wrong = pullWith(`http://${front.host}`, { login: "anna:wrong" });
    await expect(wrong).rejects.toThrow(/^unauthorized: access denied with models.sourceLogin$/);
    await expect(pullWith(`http://${front.host}`, {})).rejects.toThrow("requires a user and a password");
    front.seen.length = 0;
    await expect(pullWith("http://127.0.0.1:1", { login })).rejects.toThrow("requires a user and a password");
    expect(front.seen.map(({ authorization }) => authorization)).toEqual([null]);
  });

  test("get a token if the registry requires one", async () => {
    front.behaviour.interfere = ({ path, authorization }) => {
      if (path === "/token") {
        return authorization === basic ? Response.json({ token: "t" }) : new Response(null, { status: 401 });
      }
      const challenge = `Bearer realm="http://${front.host}/token",service="front"`;
      const isKnown = authorization === "Bearer t";
      return isKnown ? undefined : new Response(null, { status: 401, headers: { "www-authenticate": challenge } });
    };
    expect(await pullWith(`http://${front.host}`, { login })).toBe("success");
    const wrong = pullWith(`http://${front.host}`, { login: "anna:wrong" });
    await expect(wrong).rejects.toThrow(/^unauthorized: access denied with models.sourceLogin$/);
  });

  test.skipIf(!DOCKER_REGISTRY)(
    "docker-registry with htpasswd: a login pushes and pulls, and requests without it are refused",
    async () => {
      const registry = await startDockerRegistry(`${place.home}/registry`, "anna:secret");
      const [from, to, wrong] = await Promise.all(
        ["secret", "secret", "wrong"].map((password) =>
          makePlace({}, true, { source: new URL(`http://${registry.host}`), login: `anna:${password}` }),
        ),
      );
      try {
        await putModel(from!.root, "m");
        expect((await Array.fromAsync(from!.push("m"))).at(-1)!.status).toBe("success");
        expect((await Array.fromAsync(to!.pull("m"))).at(-1)!.status).toBe("success");
        const denied = "unauthorized: access denied with models.sourceLogin";
        await expect(Array.fromAsync(wrong!.pull("m"))).rejects.toThrow(denied);
        await putModel(wrong!.root, "n");
        await expect(Array.fromAsync(wrong!.push("n"))).rejects.toThrow(denied);
      } finally {
        await registry.stop();
        for (const each of [from, to, wrong]) await each?.close();
      }
    },
  );
});
