/** A field that replaces a name in the list. Enter or a press outside renames, Escape keeps the name. */
import { isComposing } from "../base/keys.tsx";

interface RenameProps {
  readonly label: string;
  readonly title: string;
  readonly onDone: (title: string) => void;
}

export function RenameField({ label, title, onDone }: RenameProps) {
  const focus = (input: HTMLInputElement | null): void => input?.select();
  return (
    <input
      ref={focus}
      class="rename"
      aria-label={label}
      defaultValue={title}
      onBlur={(event) => onDone(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (isComposing(event)) return;
        if (event.key === "Enter") event.currentTarget.blur();
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onDone(title);
      }}
    />
  );
}
