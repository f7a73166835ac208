/**
 * Keeps a waiting device from burning a core. While work is pending Dawn arms itself with `setImmediate` again and
 * again, half a million times a second; this lets it do so for a moment after each submit, when an answer may be near,
 * and once a millisecond after that. In a browser there is no `setImmediate`, and nothing to do.
 */

/** How long an answer is looked for without a pause: a readback of a small model's token takes some 0.1 ms. */
const EAGER_MS = 0.3;

/** Takes over `setImmediate`. The returned function opens the eager moment: call it after every submit. */
export function paceEventLoop(): () => void {
  const { setImmediate: immediate, setTimeout: later } = globalThis;
  if (typeof immediate !== "function") return () => {};
  let eagerUntil = 0;
  const paced = (run: (...args: unknown[]) => void, ...args: unknown[]): unknown =>
    performance.now() < eagerUntil ? immediate(run, ...args) : later(run, 1, ...args);
  globalThis.setImmediate = Object.assign(paced, immediate) as typeof immediate; // what it returns can be cleared alike
  return () => void (eagerUntil = performance.now() + EAGER_MS);
}
