/** Addresses that a registry may redirect a pull or a push to, and errors about internal ones. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closeness, makeReach, type Lookup } from "../../../src/library/registry/reach.ts";
import { startFront, type Front } from "./front.ts";
import { KB, makePlace, noise, publish, type Place } from "./place.ts";

const SECRET = "INTERNAL password=hunter2";
const open = new AbortController().signal;

describe("addresses", () => {
  test.each([
    ["93.184.216.34", 0],
    ["2606:2800:220:1::1", 0],
    ["64:ff9b::5db8:d822", 0], // 93.184.216.34 as a network without IPv4 writes it
    ["64:ff9b::a00:1", 1],
    ["10.1.2.3", 1],
    ["172.16.0.1", 1],
    ["192.168.1.1", 1],
    ["100.64.0.1", 1],
    ["fd00::1", 1],
    ["::ffff:10.0.0.1", 1],
    ["198.18.0.9", 1],
    ["192.0.2.2", 1],
    ["2001:db8::1", 1],
    ["127.0.0.1", 2],
    ["127.9.9.9", 2],
    ["0.0.0.0", 2],
    ["::1", 2],
    ["::", 2],
    ["::ffff:127.0.0.1", 2],
    ["64:ff9b::7f00:1", 2],
    ["169.254.169.254", 3],
    ["fe80::1%eth0", 3],
    ["::ffff:169.254.169.254", 3],
    ["224.0.0.1", 3],
    ["255.255.255.255", 3],
    ["nonsense", 3],
  ])("%s is %d steps from the internet", (address, steps) => expect(closeness(address)).toBe(steps));
});

const NAMES: Readonly<Record<string, string[]>> = {
  "public.example": ["93.184.216.34"],
  "cdn.example": ["93.184.216.35", "2606:2800:220:1::1"],
  "lan.example": ["10.0.0.5"],
  "both.example": ["93.184.216.34", "127.0.0.1"],
  "metadata.example": ["169.254.169.254"],
  localhost: ["127.0.0.1", "::1"],
};
const ask: Lookup = async (host) => {
  const found = NAMES[host];
  if (!found) throw new Error("not known");
  return found.map((address) => ({ address }));
};

describe("redirects of a registry", () => {
  const goes = (from: string, to: string): Promise<boolean> =>
    makeReach(new URL(from), ask)(new URL(to), open).then(
      () => true,
      () => false,
    );
  const hostile = [
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://[::1]:9200/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::]/",
    "http://0/",
    "http://localhost:8080/",
    "http://10.0.0.1/",
    "http://172.31.255.1/",
    "http://192.168.0.1/",
    "http://100.100.100.200/",
    "http://169.254.169.254/latest/meta-data",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/",
    "http://[64:ff9b::7f00:1]/",
    "http://lan.example/",
    "http://both.example/",
    "http://metadata.example/",
  ];
  test.each(hostile)(
    "do not lead from the internet, a host with a second address there or an unknown one, to %s",
    async (to) => {
      for (const from of ["https://public.example", "https://both.example", "https://nobody.example"]) {
        expect([from, await goes(from, to)]).toEqual([from, false]);
      }
    },
  );

  test("lead from an address that is invalid for registries no further than from the internet", async () => {
    for (const from of ["http://169.254.7.7:5000", "http://[fe80::7]:5000", "http://224.0.0.1", "http://240.0.0.1"]) {
      for (const to of hostile) expect([from, to, await goes(from, to)]).toEqual([from, to, false]);
      expect([from, await goes(from, "https://cdn.example/")]).toEqual([from, true]);
    }
  });

  test("lead from the internet to the internet, and to names that only a proxy can resolve", async () => {
    for (const to of [
      "https://cdn.example/",
      "https://1.1.1.1/",
      "https://[2606:4700::1111]/",
      "https://nobody.example",
    ]) {
      expect([to, await goes("https://public.example", to)]).toEqual([to, true]);
    }
  });

  test("lead from a private network into it and the internet, but not to this machine or link-local addresses", async () => {
    for (const from of [
      "http://lan.example:5000",
      "http://192.168.7.7",
      "http://[fd00::7]:5000",
      "http://198.18.0.7",
      "http://192.0.2.2:5000",
    ]) {
      for (const to of ["http://10.0.0.9", "https://cdn.example", "http://lan.example"])
        expect(await goes(from, to)).toBe(true);
      for (const to of ["http://127.0.0.1", "http://localhost", "http://169.254.169.254", "http://both.example"]) {
        expect([from, to, await goes(from, to)]).toEqual([from, to, false]);
      }
    }
  });

  test("lead from this machine to everything but link-local addresses", async () => {
    for (const to of ["http://localhost:9", "http://[::1]:9", "http://lan.example", "https://cdn.example"]) {
      expect([to, await goes("http://127.0.0.1:5000", to)]).toEqual([to, true]);
    }
    expect(await goes("http://127.0.0.1:5000", "http://169.254.169.254")).toBe(false);
  });

  test("do not follow a name that changes its address", async () => {
    let address = "93.184.216.34";
    const check = makeReach(new URL("http://evil.example"), async () => [{ address }]);
    await check(new URL("http://evil.example/v2/"), open);
    address = "127.0.0.1";
    expect(check(new URL("http://evil.example:9200/"), open)).rejects.toThrow("may not send us to evil.example:9200");
  });

  test("stop waiting for a name when the signal aborts", async () => {
    const stop = new AbortController();
    const check = makeReach(new URL("http://public.example"), () => new Promise(() => {}));
    const checked = check(new URL("http://slow.example"), stop.signal);
    stop.abort();
    expect(checked).rejects.toThrow("request canceled");
  });
});

describe("a pull and a push", () => {
  let front: Front;
  let internal: ReturnType<typeof Bun.serve>;
  let places: Place[];
  let asked: string[];
  beforeEach(() => {
    front = startFront();
    asked = [];
    internal = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        const { pathname } = new URL(request.url);
        asked.push(`${request.method} ${pathname}`);
        if (pathname === "/json") return Response.json({ config: { mediaType: SECRET } });
        const status = Number(pathname.slice(1));
        return new Response(SECRET, { status });
      },
    });
    places = [];
  });
  afterEach(async () => {
    await front.stop();
    await internal.stop(true);
    await Promise.all(places.map((place) => place.close()));
  });

  /** A place that treats `localhost`, the front's address too, as a public address. */
  const far = async (): Promise<{ place: Place; name: string }> => {
    const place = await makePlace({ tries: 2 }, true, {
      lookup: async (host) => [{ address: host === "localhost" ? "93.184.216.34" : "127.0.0.1" }],
    });
    places.push(place);
    return { place, name: publish(front, "m", [noise(KB, 1)]).replace("127.0.0.1", "localhost") };
  };
  const near = async (): Promise<{ place: Place; name: string }> => {
    const place = await makePlace({ tries: 2 });
    places.push(place);
    return { place, name: publish(front, "m", [noise(KB, 1)]) };
  };
  const sendTo = (kind: "manifests" | "blobs", path: string): void => {
    const location = `http://127.0.0.1:${internal.port}${path}`;
    front.behaviour.interfere = (seen) =>
      seen.path.includes(kind) ? new Response(null, { status: 307, headers: { location } }) : undefined;
  };
  const failure = async (steps: AsyncGenerator<unknown>): Promise<string> => {
    try {
      await Array.fromAsync(steps);
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each(["manifests", "blobs"] as const)(
    "does not follow a redirect from the internet into this machine for %s",
    async (kind) => {
      const { place, name } = await far();
      sendTo(kind, "/403");
      expect(await failure(place.pull(name))).toContain(`may not send us to 127.0.0.1:${internal.port}`);
      expect(asked).toEqual([]);
    },
  );

  test("refuses an upload location in this machine", async () => {
    const { place, name } = await near();
    await Array.fromAsync(place.pull(name));
    const { place: from, name: pushed } = await far();
    await Array.fromAsync(from.pull(pushed));
    front.blobs.clear();
    const location = `http://127.0.0.1:${internal.port}/202`;
    front.behaviour.interfere = (seen) =>
      seen.path.includes("uploads") ? new Response(null, { status: 202, headers: { location } }) : undefined;
    expect(await failure(from.push(pushed))).toContain("may not send us to");
    expect(asked).toEqual([]);
    front.behaviour.interfere = (seen) =>
      seen.path.includes("uploads")
        ? new Response(null, { status: 202, headers: { location: location.replace("202", "403") } })
        : undefined;
    const said = await failure(place.push(name));
    expect([asked.length > 0, said.includes("403"), said.includes("hunter2")]).toEqual([true, true, false]);
  });

  test.each([
    ["manifests", "/403"],
    ["manifests", "/500"],
    ["manifests", "/200"],
    ["manifests", "/json"],
    ["blobs", "/403"],
    ["blobs", "/500"],
    ["blobs", "/200"],
  ] as const)("quotes nothing from a redirected answer: %s at %s", async (kind, path) => {
    const { place, name } = await near();
    sendTo(kind, path);
    const said = await failure(place.pull(name));
    expect(asked.length).toBeGreaterThan(0);
    expect(said).not.toContain("hunter2");
    expect(said).not.toMatch(new RegExp(`\\b${SECRET.length}\\b`));
    expect(said).toContain(path === "/403" || path === "/500" ? path.slice(1) : "");
  });

  test("quotes the registry's own message", async () => {
    const { place, name } = await near();
    front.behaviour.interfere = () => new Response("come back on Monday", { status: 403 });
    expect(await failure(place.pull(name))).toContain("403: come back on Monday");
  });
});
