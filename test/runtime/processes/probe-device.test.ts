/** The server's device probe at startup. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { probeInChild } from "../../../src/runtime/processes/probe-device.ts";

setDefaultTimeout(60_000);

/** A child with a driver's output, or another end. */
const child = (program: string) => ({ command: [process.execPath, "-e", program], env: process.env });

test("a backend without a GPU is asked of no driver", async () => {
  const never = child("process.exit(1)");
  expect(await probeInChild({ backend: "cpu", ...never })).toEqual({ backend: "cpu" });
});

test("what a GPU's driver says in a child is what is told", async () => {
  const found = { backend: "webgpu", gpu: "Some GPU" };
  const driver = child(`console.log(${JSON.stringify(JSON.stringify(found))})`);
  expect(await probeInChild({ backend: "webgpu", ...driver })).toEqual(found);
});

test("a driver that ends the child is an error with its last words", async () => {
  const crash = child("console.error('no GPU adapter'); process.kill(process.pid, 'SIGKILL')");
  expect(probeInChild({ backend: "webgpu", ...crash })).rejects.toMatchObject({
    code: "unsupported",
    message: "no GPU adapter",
  });
});
