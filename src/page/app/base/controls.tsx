/** Buttons and fields of forms, and regular checks of the server. */
import type { Signal } from "@preact/signals";
import type { ComponentChildren, ComponentProps } from "preact";
import { useEffect } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";

/** @param look further classes, such as `small primary` */
export const Button = ({ look = "", ...props }: ComponentProps<"button"> & { look?: string }) => (
  <button type="button" class={`button ${look}`.trim()} {...props} />
);

export const SmallButton = (props: ComponentProps<"button">) => <Button look="small" {...props} />;

export const Submit = (props: ComponentProps<"button">) => <Button type="submit" look="primary" {...props} />;

interface IconButtonProps extends ComponentProps<"button"> {
  readonly icon: IconName;
  /** For screen readers, and shown where a pointer rests. */
  readonly label: string;
  readonly size?: number;
}

export const IconButton = ({ icon, label, size = 18, ...props }: IconButtonProps) => (
  <button type="button" class="icon-button" aria-label={label} title={label} {...props}>
    <Icon name={icon} size={size} />
  </button>
);

/** An input with its label. */
export const Field = ({ label, children }: { label: string; children: ComponentChildren }) => (
  <label class="field">
    <span>{label}</span>
    {children}
  </label>
);

/** The attributes of an input or a text area that writes into a signal. */
export const typed = (text: Signal<string>) => ({
  value: text.value,
  onInput: (event: { currentTarget: { value: string } }) => void (text.value = event.currentTarget.value),
});

/** The same for a choice. */
export const chosen = (text: Signal<string>) => ({
  value: text.value,
  onChange: (event: { currentTarget: { value: string } }) => void (text.value = event.currentTarget.value),
});

/** Calls `look` now, whenever one of `inputs` changes, and every `ms` while `isWanted`. */
export function useLooks(
  look: () => unknown,
  ms: number,
  inputs: readonly unknown[] = [],
  isWanted = () => true,
): void {
  useEffect(() => {
    look();
    const timer = setInterval(() => isWanted() && look(), ms);
    return () => clearInterval(timer);
  }, inputs);
}
