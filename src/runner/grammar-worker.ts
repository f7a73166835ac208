/** The thread that compiles large grammars; see `sampling/grammar-threads.ts`. */
import { makeGrammarCompiler } from "../sampling/grammar.ts";
import { serveGrammars, type ToGrammarThread } from "../sampling/grammar-threads.ts";

declare const self: Worker;

const serve = serveGrammars(makeGrammarCompiler, (message) => self.postMessage(message));
self.onmessage = ({ data }: MessageEvent<ToGrammarThread>) => void serve(data);
