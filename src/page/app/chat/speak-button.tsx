/** Reads an answer aloud, and stops. */
import { useEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import type { Message } from "./tree.ts";
import { IconButton } from "../base/controls.tsx";

export function SpeakButton({ message: { id, content } }: { message: Message }) {
  const { speech } = useApp();
  const { chat: words } = useWords();
  useEffect(
    () => () => {
      if (speech.message.peek() === id) speech.stop();
    },
    [id],
  );
  if (!speech.canSpeak.value || content === "") return null;
  const isRead = speech.message.value === id;
  const label = isRead ? words.stopReading : words.readAloud;
  return (
    <IconButton
      icon={isRead ? "stop" : "speaker"}
      label={label}
      size={16}
      aria-pressed={isRead}
      data-marked={isRead}
      onClick={() => (isRead ? speech.stop() : speech.speak(id, content))}
    />
  );
}
