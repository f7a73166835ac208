/** The server's device probe at startup. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { probeInChild } from "../../../src/runtime/processes/probe-device.ts";

setDefaultTimeout(60_000);

/** A child with a driver's output, or another end. */
const child = (program: string) => ({ command: [process.execPath, "-e", program], env: process.env });

test("the CPU backend starts no child process", async () => {
  const never = child("process.exit(1)");
  expect(await probeInChild({ backend: "cpu", ...never })).toEqual({ backend: "cpu" });
});

test("the probe returns the device that the child prints", async () => {
  const found = { backend: "webgpu", gpu: "Some GPU" };
  const driver = child(`console.log(${JSON.stringify(JSON.stringify(found))})`);
  expect(await probeInChild({ backend: "webgpu", ...driver })).toEqual(found);
});

test("a driver that kills the child is an error with the child's last output", async () => {
  const crash = child("console.error('no GPU adapter'); process.kill(process.pid, 'SIGKILL')");
  expect(probeInChild({ backend: "webgpu", ...crash })).rejects.toMatchObject({
    code: "unsupported",
    message: "no GPU adapter",
  });
});
