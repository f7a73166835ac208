/** The thread that compiles large grammars; see `engine/text/sampling/grammar-threads.ts`. */
import { makeGrammarCompiler } from "../text/sampling/grammar.ts";
import { serveGrammars, type ToGrammarThread } from "../text/sampling/grammar-threads.ts";

declare const self: Worker;

const serve = serveGrammars(makeGrammarCompiler, (message) => self.postMessage(message));
self.onmessage = ({ data }: MessageEvent<ToGrammarThread>) => void serve(data);
