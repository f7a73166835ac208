/** Short messages at the foot of the page, announced to screen readers too. Only their buttons take clicks. */
import { useApp, useWords } from "../context.ts";
import { Icon } from "./icons.tsx";

export function NoticeList() {
  const { notices } = useApp();
  const { base } = useWords();
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.list.value.map(({ id, text, undo }) => (
        <div class="notice" key={id}>
          <span>{text}</span>
          {undo && (
            <button type="button" class="button small" onClick={undo}>
              {base.undo}
            </button>
          )}
          <button type="button" class="icon-button" aria-label={base.close} onClick={() => notices.close(id)}>
            <Icon name="close" size={16} />
          </button>
        </div>
      ))}
    </div>
  );
}
