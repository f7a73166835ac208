/** Help for new users. */
import { useApp, useWords } from "../context.ts";
import { Dialog } from "./dialog.tsx";
import { Button } from "./controls.tsx";

export function HelpDialog() {
  const { over } = useApp();
  const { help: words, keyboard } = useWords();
  return (
    <Dialog title={words.title} kind="sheet" onClose={() => (over.value = undefined)}>
      <div class="stack">
        {words.topics.map(({ title, text }) => (
          <section class="topic">
            <h3>{title}</h3>
            <p>{text}</p>
          </section>
        ))}
        <div class="row">
          <a class="button" href="docs" target="_blank" rel="noopener">
            {words.api}
          </a>
          <Button onClick={() => (over.value = "keys")}>{keyboard.title}</Button>
        </div>
      </div>
    </Dialog>
  );
}
