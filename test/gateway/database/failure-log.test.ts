import { expect, test } from "bun:test";
import { FailureLog } from "../../../src/gateway/database/failure-log.ts";
import type { Logger } from "../../../src/base/log.ts";

test("a lasting failure and another one are each logged once, and so is their end", () => {
  const logged: string[] = [];
  const say: Logger["error"] = (msg, fields) => void logged.push(`${msg} ${JSON.stringify(fields ?? {})}`);
  const log: Logger = { debug: say, info: say, warn: say, error: say };
  const failures = new FailureLog("nothing can be stored");
  failures.succeeded(log);
  for (let i = 0; i < 100; i++) failures.failed(new Error("the disk is full"), log);
  for (let i = 0; i < 100; i++) failures.failed(new Error("the disk is read-only"), log);
  for (let i = 0; i < 100; i++) failures.succeeded(log);
  failures.failed(new Error("the disk is full"), log);
  expect(logged).toEqual([
    'nothing can be stored {"error":"the disk is full"}',
    'nothing can be stored {"error":"the disk is read-only"}',
    "recovered: nothing can be stored {}",
    'nothing can be stored {"error":"the disk is full"}',
  ]);
});
