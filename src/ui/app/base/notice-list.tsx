/** Short messages at the edge of the page, told to screen readers too. */
import { useApp } from "../context.ts";
import { Icon } from "./icons.tsx";

export function NoticeList() {
  const { notices } = useApp();
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.list.value.map(({ id, text }) => (
        <div class="notice" key={id}>
          <span>{text}</span>
          <button type="button" class="icon-button" aria-label="Close" onClick={() => notices.close(id)}>
            <Icon name="close" size={16} />
          </button>
        </div>
      ))}
    </div>
  );
}
