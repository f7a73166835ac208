/** Starts a thread that compiles large grammars. */
import type { FromGrammarThread, OpenGrammarThread } from "../text/sampling/grammar-threads.ts";

export const openGrammarThread: OpenGrammarThread = (receive, fail) => {
  const worker = new Worker(new URL("./grammar-worker.ts", import.meta.url));
  worker.onmessage = ({ data }: { data: FromGrammarThread }) => receive(data);
  worker.onerror = ({ message }) => fail(message);
  return { send: (message) => worker.postMessage(message), end: () => worker.terminate() };
};
