/** A button that copies a text, and confirms it. */
import { useSignal } from "@preact/signals";
import { useWords } from "../context.ts";
import { IconButton } from "./controls.tsx";

const SAID_MS = 1500;

export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const { copied } = useWords().markdown;
  const isDone = useSignal(false);
  const copy = (): void => {
    void copyText(text()).then(() => {
      isDone.value = true;
      setTimeout(() => (isDone.value = false), SAID_MS);
    });
  };
  return (
    <IconButton
      icon={isDone.value ? "check" : "copy"}
      label={isDone.value ? copied : label}
      size={16}
      title={label}
      onClick={copy}
    />
  );
}

/** Pages not served over HTTPS have no clipboard API: they copy a selection. */
export async function copyText(text: string): Promise<void> {
  if ("clipboard" in navigator && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "off-screen";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
