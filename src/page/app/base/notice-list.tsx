/** Short messages at the foot of the page, announced to screen readers too. Only their buttons take clicks. */
import { useApp, useWords } from "../context.ts";
import { IconButton, SmallButton } from "./controls.tsx";

export function NoticeList() {
  const { notices } = useApp();
  const { base } = useWords();
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.list.value.map(({ id, text, undo }) => (
        <div class="notice" key={id}>
          <span>{text}</span>
          {undo && <SmallButton onClick={undo}>{base.undo}</SmallButton>}
          <IconButton icon="close" label={base.close} size={16} onClick={() => notices.close(id)} />
        </div>
      ))}
    </div>
  );
}
