/** Registries without TLS, or with an untrusted certificate. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { makePlace, noise, publish } from "./place.ts";
import { startFront, type Front } from "./front.ts";

let front: Front;
beforeEach(() => (front = startFront()));
afterEach(() => front.stop());

/** Made for these tests. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglz5RDOvk5KSQIaky
tf9jHleRLyaQ0iIWV0lTEvkZycuhRANCAATXZK2MEopCF9DmXMZrDJ2bWzlJjoF/
u0qjp66+aVLn5tY3haHI/Mr06nTmoFOHrYj+bKcwOmoR/fnaX11X40PU
-----END PRIVATE KEY-----
`;
const CERT = `-----BEGIN CERTIFICATE-----
MIIBgzCCASmgAwIBAgIUW/unCexbKqd33frbSAlMbbSjh18wCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLaGVhcnRoLXRlc3QwIBcNMjYxMTIxMTMwODIwWhgPMjEyNjEw
MjgxMzA4MjBaMBYxFDASBgNVBAMMC2hlYXJ0aC10ZXN0MFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAE12StjBKKQhfQ5lzGawydm1s5SY6Bf7tKo6euvmlS5+bWN4Wh
yPzK9Op05qBTh62I/mynMDpqEf352l9dV+ND1KNTMFEwHQYDVR0OBBYEFDnlDv9K
USlXVtWmCM7OWbVhUpDsMB8GA1UdIwQYMBaAFDnlDv9KUSlXVtWmCM7OWbVhUpDs
MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAJw3UcEp1juvike1
EPv8jjDx6nnFurTQgqAwT0Iu2QvmAiBCarPkeDOZXERp8wq59lzXXyuvEJMx4soG
cuerHZWZFw==
-----END CERTIFICATE-----
`;

/** The front behind TLS. */
const serveTls = () =>
  Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { key: KEY, cert: CERT },
    fetch: ({ url, method, headers }) =>
      fetch(Object.assign(new URL(url), { protocol: "http:", host: front.host }), { method, headers }),
  });

test("a registry without TLS fails at once, and the message names 'insecure'", async () => {
  await using place = await disposable(false);
  const name = publish(front, "m", [noise(1000, 1)]);
  for (const moved of [place.pull(name), place.pull(`https://${name}`)]) {
    await expect(Array.fromAsync(moved)).rejects.toMatchObject({
      code: "registry",
      message: expect.stringMatching(/^127\.0\.0\.1:\d+: .*TLS.* \('insecure' allows it\)$/),
    });
  }
  expect(front.seen).toEqual([]);
}, 60_000);

test("an untrusted certificate is refused at once, and accepted for an insecure request", async () => {
  const server = serveTls();
  try {
    const name = publish(front, "m", [noise(200_000, 1)]).replace(front.host, `https://127.0.0.1:${server.port}`);
    await using careful = await disposable(false);
    await expect(Array.fromAsync(careful.pull(name))).rejects.toMatchObject({
      code: "registry",
      message: expect.stringContaining("certificate"),
    });
    expect(front.seen).toEqual([]);
    await using careless = await disposable(true);
    expect((await Array.fromAsync(careless.pull(name))).at(-1)).toEqual({ status: "success" });
  } finally {
    await server.stop(true);
  }
}, 60_000);

/** One retry would outlast the test. */
async function disposable(insecure: boolean) {
  const place = await makePlace({ backoffMs: 300_000 }, insecure);
  return { ...place, [Symbol.asyncDispose]: () => place.close() };
}
