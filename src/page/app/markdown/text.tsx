/** Markdown text: complete, or growing. */
import { useMemo, useRef } from "preact/hooks";
import { blocksOf, NO_BLOCKS, normalLines, readBlocks, type Blocks } from "./blocks.ts";
import { copyWithSource } from "./formula.tsx";
import { Block } from "./render.tsx";

export function MarkdownText({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(normalLines(text)), [text]);
  return (
    <div class="markdown" onCopy={copyWithSource}>
      {blocks.map((token, i) => (
        <Block key={i} token={token} isOver />
      ))}
    </div>
  );
}

/** Keeps parsed blocks; only the last block is parsed again. */
export function GrowingText({ text }: { text: string }) {
  const read = useRef<Blocks>(NO_BLOCKS);
  const { done, tail } = (read.current = readBlocks(read.current, normalLines(text)));
  return (
    <div class="markdown" onCopy={copyWithSource}>
      {done.map((token, i) => (
        <Block key={i} token={token} isOver />
      ))}
      {tail.map((token, i) => (
        <Block key={done.length + i} token={token} isOver={false} />
      ))}
    </div>
  );
}
