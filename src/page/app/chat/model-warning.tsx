/** Warns before sending that the chosen model cannot answer, and offers models that can. */
import { useApp, useWords } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { canChat, canSee, shortName, type StoredModel } from "../models/models.ts";
import type { Place } from "./tree.ts";
import { SmallButton } from "../base/controls.tsx";

const OFFERED_MAX = 3;

interface Warning {
  readonly kind: "gone" | "cannotChat" | "cannotSee";
  readonly others: readonly StoredModel[];
}

/** @param hasPictures true if the chat or the attachments have pictures */
export function useModelWarning(model: string, place: Place, hasPictures: boolean): Warning | undefined {
  const { models } = useApp();
  if (model === "" || !models.list.value) return undefined;
  const found = models.find(model);
  const all = models.chatting.value;
  if (!found) return { kind: "gone", others: all };
  if (!canChat(found)) return { kind: "cannotChat", others: all };
  if (!hasPictures || canSee(found, place)) return undefined;
  return { kind: "cannotSee", others: all.filter(({ capabilities }) => capabilities?.includes("vision")) };
}

interface WarningProps {
  readonly warning: Warning;
  readonly model: string;
  readonly onUse: (model: string) => void;
  /** Undefined: no picture can be removed. */
  readonly onRemovePictures: (() => void) | undefined;
}

export function ModelWarning({ warning: { kind, others }, model, onUse, onRemovePictures }: WarningProps) {
  const { composer: words } = useWords();
  return (
    <div class="warning" role="alert">
      <Icon name="warn" />
      <p>{words[kind](shortName(model))}</p>
      <div class="row">
        {others.slice(0, OFFERED_MAX).map(({ name }) => (
          <SmallButton onClick={() => onUse(name)}>{words.use(shortName(name))}</SmallButton>
        ))}
        {others.length === 0 && (
          <a class="button small" href="#/models">
            {kind === "cannotSee" ? words.getSeeing : words.getModel}
          </a>
        )}
        {kind === "cannotSee" && onRemovePictures && (
          <SmallButton onClick={onRemovePictures}>{words.removePictures}</SmallButton>
        )}
      </div>
    </div>
  );
}
