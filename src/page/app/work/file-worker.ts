/**
 * The page's Worker for files: digests of models, and the text of documents. It runs one task, then the page ends it.
 */
import type { WorkReply, WorkTask } from "./work.ts";

/** A Worker's own scope, which the library of types lacks here. */
const scope = globalThis as unknown as {
  onmessage: (event: { readonly data: WorkTask }) => void;
  postMessage(reply: WorkReply): void;
};

scope.onmessage = ({ data }) => {
  run(data).then(
    (result) => scope.postMessage({ kind: "done", result }),
    (error: unknown) => scope.postMessage({ kind: "failed", reason: error instanceof Error ? error.message : "" }),
  );
};

async function run(task: WorkTask): Promise<unknown> {
  const onProgress = (done: number): void => scope.postMessage({ kind: "progress", done });
  if (task.kind === "document") {
    return (await import("./read-document.ts")).readDocument(task.file, task.name, onProgress);
  }
  return (await import("./digest.ts")).digestOf(task.file, onProgress);
}
