/** A proxy that publishes only Hearth's hooks exposes nothing else. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, isolatedEnv, startHearth, type Hearth } from "./hearth.ts";
import { HEARTH } from "../program.ts";
import { hasNginx, startNginx } from "./nginx.ts";
import { rawRequest, type RawRequest } from "./raw-request.ts";

setDefaultTimeout(120_000);

const TOKEN = "a-hook-token-of-32-characters-xx";
const quiet = { defaults: { heartbeat: { every: 0, target: "none" } } };

const homes: string[] = [];
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});
afterAll(() => {
  for (const home of homes) rmSync(home, { recursive: true, force: true });
});

function makeHome(): string {
  const home = mkdtempSync(join(tmpdir(), "hearth-proxy-"));
  homes.push(home);
  mkdirSync(join(home, ".hearth"));
  return home;
}

function configure(home: string, hooks: object): void {
  const root = { agents: quiet, hooks: { enabled: true, token: TOKEN, ...hooks } };
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify(root), { mode: 0o600 });
}

const portOf = ({ url }: Hearth): number => Number(new URL(url).port);

/** Requests for other paths, disguised so that a proxy takes them for hooks. */
const CONFUSED: readonly RawRequest[] = [
  { target: "/hooks/..\\api/tags" },
  { target: "/hooks/..\\v1/models" },
  { target: "/hooks/..\\metrics" },
  { target: "/hooks/..\\health" },
  { target: "/hooks/x/..\\..\\metrics" },
  { target: "/hooks//..\\..\\api/tags" },
  { target: "/hooks//..\\..\\api/tags/" },
  { target: "/hooks/..\\api//tags" },
  { target: "/hooks/..//api/tags" },
  { target: "/hooks/..\\/api/tags" },
  { target: "/hooks\\..//api/tags" },
  { target: "/hooks/x/../..//api//tags" },
  { target: `/hooks/${"x/".repeat(20)}${"..\\".repeat(21)}api/tags` },
  { target: `/hooks/${"x/".repeat(20)}${"..\\".repeat(21)}${"y/".repeat(20)}api/tags` },
  { target: "/hooks/%2e%2e\\api/tags" },
  { target: "/hooks/..%5capi/tags" },
  { target: "/hooks/..%5Capi/tags" },
  { target: "/hooks/%zz\\..\\..\\api/tags" },
  { target: "/hooks/..%2fapi/tags" },
  { target: "/hooks/%2e%2e%2fapi/tags" },
  { target: "/hooks/%252e%252e%252fapi/tags" },
  { target: "/hooks/../api/tags" },
  { target: "/hooks/.%2e/api/tags" },
  { target: "/v1/models/..%2f..%2fhooks%2fx" },
  { target: "/v1/models/%2e%2e%2f..%5chooks%2fx" },
  { target: "/v1/models/..%252f..%252fhooks%252fx" },
  { target: "http://localhost/hooks/..\\api/tags" },
  { method: "POST", target: "/hooks/..\\api/generate", body: '{"model":"hearth","prompt":"hi","stream":false}' },
  { method: "DELETE", target: "/hooks/..\\api/delete", body: '{"model":"hearth"}' },
];

/** Refused by the proxy, by Hearth, or by the hooks. */
const REFUSED = [400, 401, 403, 404, 405];

const wake: RawRequest = {
  method: "POST",
  target: "/hooks/wake",
  headers: { authorization: `Bearer ${TOKEN}` },
  body: '{"text":"hello"}',
};

describe("the listener of the whole server", () => {
  let hearth: Hearth;
  beforeAll(async () => {
    const home = makeHome();
    configure(home, {});
    hearth = await startHearth({ home, isSteady: true });
  });
  afterAll(() => hearth.stop());

  const modelsLeft = async (): Promise<number> =>
    ((await (await fetch(`${hearth.url}/api/tags`)).json()) as { models: object[] }).models.length;

  test("gives a path below hooks.path no access to another route", async () => {
    for (const request of CONFUSED) {
      const { status, body } = await rawRequest(portOf(hearth), request);
      expect([request.target, REFUSED.includes(status), body]).toEqual([request.target, true, body]);
      expect(body).not.toMatch(/model '|"models"|"response"|"data"|hearth_|"status"/);
    }
    expect(await modelsLeft()).toBe(1);
  });

  test("accepts paths that do not leave hooks.path", async () => {
    expect((await rawRequest(portOf(hearth), wake)).status).toBe(200);
    expect((await rawRequest(portOf(hearth), { ...wake, target: "/hooks//wake" })).status).toBe(200);
    expect((await rawRequest(portOf(hearth), { target: "/api/tags/" })).status).toBe(200);
    expect((await rawRequest(portOf(hearth), { target: "/v1/models/library%2Fnobody" })).body).toContain("nobody");
    expect((await rawRequest(portOf(hearth), { target: "/%zz" })).status).toBe(404);
  });

  describe.skipIf(!hasNginx)("behind nginx that publishes /hooks/ alone", () => {
    test.each([
      ["without a path in proxy_pass", ""],
      ["with a path in proxy_pass", "/hooks/"],
    ])("%s, refuses paths that leave /hooks/", async (_, path) => {
      const nginx = await startNginx(
        `location /hooks/ { proxy_pass http://127.0.0.1:${portOf(hearth)}${path}; } location / { return 403; }`,
      );
      cleanups.push(nginx.stop);
      for (const request of CONFUSED) {
        const { status, body } = await rawRequest(nginx.port, request);
        expect([request.target, status, REFUSED.includes(status)]).toEqual([request.target, status, true]);
        expect(body).not.toMatch(/model '|"models"|"response"|"data"|hearth_|"status"/);
      }
      expect(await modelsLeft()).toBe(1);
      expect((await rawRequest(nginx.port, wake)).status).toBe(200);
    });
  });
});

describe("a listener of the hooks' own", () => {
  test("has hooks.path and nothing else, and moves with the configuration", async () => {
    const home = makeHome();
    configure(home, { listen: "127.0.0.1:0" });
    const hearth = await startHearth({ home, isSteady: true });
    cleanups.push(() => hearth.stop());
    const port = Number(/hooks on http:\/\/127\.0\.0\.1:(\d+)/.exec(hearth.greeting)?.[1]);
    for (const target of ["/", "/api/tags", "/v1/models", "/metrics", "/health", "/hooks-admin/deliveries", "/docs"]) {
      const { status, body } = await rawRequest(port, { target });
      expect([target, status, JSON.parse(body).code]).toEqual([target, 404, "not_found"]);
    }
    for (const request of CONFUSED) {
      const { status } = await rawRequest(port, request);
      expect([request.target, status, REFUSED.includes(status)]).toEqual([request.target, status, true]);
    }
    expect((await rawRequest(port, wake)).status).toBe(200);
    const socket = join(home, "hooks.sock");
    configure(home, { listen: `unix:${socket}` });
    // the file exists a moment before the listener
    const isOpen = async (): Promise<boolean> => {
      const answer = await rawRequest(socket, wake).catch(() => undefined);
      return answer?.status === 200;
    };
    expect(await eventually(isOpen, 10_000)).toBe(true);
    const isClosed = async (): Promise<boolean> => {
      const answer = await rawRequest(port, wake).catch(() => "refused");
      return answer === "refused";
    };
    expect(await eventually(isClosed, 10_000)).toBe(true);
    configure(home, { listen: `unix:${socket}`, enabled: false });
    expect(await eventually(() => !existsSync(socket), 10_000)).toBe(true);
  });

  test("has a Unix socket for owner and group, replaces a stale one, refuses one in use, and removes it at the end", async () => {
    const [home, other] = [makeHome(), makeHome()];
    const socket = join(home, "hooks.sock");
    for (const each of [home, other]) configure(each, { listen: `unix:${socket}` });
    const killed = await startHearth({ home, isSteady: true });
    await killed.stop();
    expect(existsSync(socket)).toBe(true); // left by a killed server
    const hearth = await startHearth({ home, isSteady: true });
    cleanups.push(() => hearth.stop());
    expect((statSync(socket).mode & 0o777).toString(8)).toBe("660");
    expect((await rawRequest(socket, wake)).status).toBe(200);
    expect((await rawRequest(socket, { target: "/api/tags" })).status).toBe(404);
    expect(await refusalOf(other)).toContain(`cannot listen on unix:${socket}: the address is already in use`);
    expect((await rawRequest(socket, wake)).status).toBe(200);
    hearth.process.kill("SIGTERM");
    expect(await hearth.process.exited).toBe(0);
    expect(existsSync(socket)).toBe(false);
    writeFileSync(socket, "a file of somebody's");
    expect(await refusalOf(other)).toContain(`cannot listen on unix:${socket}: there is a file of that name`);
    expect(statSync(socket).isFile()).toBe(true);
  });

  test("counts a client of a proxy on the socket by its X-Forwarded-For address", async () => {
    const home = makeHome();
    const socket = join(home, "hooks.sock");
    configure(home, { listen: `unix:${socket}` });
    const hearth = await startHearth({ home, isSteady: true });
    cleanups.push(() => hearth.stop());
    const guess = (address: string) =>
      rawRequest(socket, { ...wake, headers: { authorization: "Bearer no", "x-forwarded-for": address } });
    for (let i = 0; i < 20; i++) await guess("192.0.2.1");
    expect((await guess("192.0.2.1")).status).toBe(429);
    expect((await guess("192.0.2.2")).status).toBe(401);
  });

  test.skipIf(!hasNginx)("works behind nginx, by address and by socket", async () => {
    for (const kind of ["address", "socket"]) {
      const home = makeHome();
      const socket = join(home, "hooks.sock");
      configure(home, { listen: kind === "socket" ? `unix:${socket}` : "127.0.0.1:0" });
      const hearth = await startHearth({ home, isSteady: true });
      cleanups.push(() => hearth.stop());
      const [url = ""] = /(?<=hooks on )\S+/.exec(hearth.greeting) ?? [];
      const upstream = kind === "socket" ? `http://unix:${socket}:` : url;
      // the whole listener: it serves nothing else
      const nginx = await startNginx(`location / { proxy_pass ${upstream}; }`);
      cleanups.push(nginx.stop);
      for (const request of [...CONFUSED, { target: "/api/tags" }, { target: "/hooks-admin/deliveries" }]) {
        const { status } = await rawRequest(nginx.port, request);
        expect([kind, request.target, REFUSED.includes(status)]).toEqual([kind, request.target, true]);
      }
      expect((await rawRequest(nginx.port, wake)).status).toBe(200);
    }
  });
});

/** The error of a server that does not start. */
async function refusalOf(home: string): Promise<string> {
  const child = Bun.spawn([...HEARTH, "serve"], {
    env: isolatedEnv(home),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const text = await new Response(child.stderr).text();
  expect(await child.exited).toBe(1);
  return text;
}
