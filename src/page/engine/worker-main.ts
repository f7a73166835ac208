/** A page's module Worker: a runner, or a kernel thread that a runner starts. */
import { runThread, type ThreadOrders } from "../../engine/portable.ts";
import { THREAD_NAME } from "./backends.ts";
import { startWorkerRunner, type WorkerScope } from "./worker.ts";

/** A Worker's own scope, which the library of types lacks here. */
const scope = globalThis as unknown as WorkerScope & {
  readonly name: string;
  onmessage: (event: { readonly data: ThreadOrders }) => void;
};

if (scope.name === THREAD_NAME) {
  scope.onmessage = ({ data }) => {
    runThread(data);
    scope.postMessage({ kind: "ended" });
  };
} else startWorkerRunner(scope);
