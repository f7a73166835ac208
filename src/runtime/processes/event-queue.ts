/** An ordered queue of events for one reader; a failure comes after the events before it. */
import type { AppError } from "../../base/index.ts";

export interface EventQueue<T> {
  push(value: T): void;
  fail(error: AppError): void;
  next(): Promise<T>;
}

export function makeQueue<T>(): EventQueue<T> {
  const values: T[] = [];
  let failure: AppError | undefined;
  let wake: (() => void) | undefined;
  return {
    push(value) {
      values.push(value);
      wake?.();
    },
    fail(error) {
      failure ??= error;
      wake?.();
    },
    async next() {
      while (values.length === 0) {
        if (failure) throw failure;
        await new Promise<void>((resolve) => (wake = resolve));
      }
      return values.shift()!; // the loop above ends with a value
    },
  };
}
