/** What a page starts as a module Worker. */
import { startWorkerRunner, type WorkerScope } from "./worker.ts";

startWorkerRunner(globalThis as unknown as WorkerScope); // a Worker's own scope, which the library of types lacks here
