/**
 * The thread pool for passes: the calling thread and Workers, which make one call per pass and sleep between passes. A
 * late Worker finds everything done. A Worker is never terminated within a call.
 */

export interface ThreadPool {
  /** Runs the pass in the header. */
  run(): void;
  /** Runs it on the calling thread alone, while the others sleep. */
  runAlone(): void;
  /** Dismisses the Workers; calls `whenGone` when none of them can touch memory any more. */
  dismiss(whenGone: () => void): void;
}

/** [0]: number of the pass, −1: end. Only a shared array can be sent to a Worker. */
export const makeSignal = (isShared: boolean): Int32Array =>
  new Int32Array(isShared ? new SharedArrayBuffer(4) : new ArrayBuffer(4));

/** @param run this thread's part of a pass */
export function makeThreadPool(workers: readonly Worker[], signal: Int32Array, run: () => void): ThreadPool {
  const wake = (pass: number): void => {
    if (workers.length === 0) return;
    Atomics.store(signal, 0, pass);
    Atomics.notify(signal, 0);
  };
  return {
    run() {
      wake((signal[0]! + 1) & 0x3fffffff);
      run();
    },
    runAlone: run,
    dismiss(whenGone) {
      let left = workers.length;
      const gone = (worker: Worker): void => {
        worker.terminate();
        if (--left === 0) whenGone();
      };
      for (const worker of workers) {
        worker.onmessage = () => gone(worker); // the message says that the Worker has left its loop
        worker.onerror = () => gone(worker);
      }
      wake(-1);
      if (left === 0) whenGone();
    },
  };
}

/**
 * A Worker's loop: its part of each pass, until it is dismissed; then it must send any message.
 * @param idle does some other work before the first pass; returns false when none is left
 */
export function takePart(signal: Int32Array, run: () => void, idle: () => boolean = () => false): void {
  let seen = 0;
  while (Atomics.load(signal, 0) === 0 && idle());
  for (;;) {
    Atomics.wait(signal, 0, seen);
    const now = Atomics.load(signal, 0);
    if (now < 0) return;
    if (now === seen) continue;
    seen = now;
    run();
  }
}
