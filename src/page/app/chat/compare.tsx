/** Chooses models that answer a question in addition to the chat's own. */
import { useSignal, type Signal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import { Icon } from "../base/icons.tsx";
import { shortName } from "../models/models.ts";
import type { AnsweredBy } from "./chat-types.ts";
import { IconButton, SmallButton } from "../base/controls.tsx";

/** More columns would be too narrow to read. */
const OTHERS_MAX = 2;

interface CompareProps {
  readonly model: string;
  readonly others: Signal<readonly AnsweredBy[]>;
}

/** The chosen models that can still answer, without the chat's own. */
export function useOthers({ model, others }: CompareProps): readonly AnsweredBy[] {
  const { models } = useApp();
  const own = models.find(model);
  return others.value.filter((each) => models.find(each.model) && models.find(each.model) !== own);
}

export function CompareButton({ model, others }: CompareProps) {
  const { models } = useApp();
  const { compare: words } = useWords();
  const isOpen = useSignal(false);
  const chosen = useOthers({ model, others });
  const own = models.find(model);
  const possible = models.chatting.value.filter((each) => each !== own);
  if (possible.length === 0) return null;
  const set = (name: string, isChosen: boolean): void => {
    const rest = chosen.filter((each) => each.model !== name);
    others.value = isChosen ? [...rest, { model: name, place: models.placeOf(name, "server") }] : rest;
  };
  return (
    <>
      <IconButton
        icon="columns"
        label={words.title}
        data-marked={chosen.length > 0}
        onClick={() => (isOpen.value = true)}
      />
      {isOpen.value && (
        <Dialog title={words.title} kind="sheet" onClose={() => (isOpen.value = false)}>
          <fieldset class="stack compare-list">
            <legend>{words.hint(shortName(model), OTHERS_MAX)}</legend>
            {possible.map(({ name }) => {
              const isChosen = chosen.some((each) => each.model === name);
              return (
                <label key={name} class="check">
                  <input
                    type="checkbox"
                    checked={isChosen}
                    disabled={!isChosen && chosen.length >= OTHERS_MAX}
                    onChange={(event) => set(name, event.currentTarget.checked)}
                  />
                  <span>{shortName(name)}</span>
                </label>
              );
            })}
          </fieldset>
        </Dialog>
      )}
    </>
  );
}

/** Lists the other models that will answer. */
export function CompareLine({ model, others }: CompareProps) {
  const { compare: words } = useWords();
  const chosen = useOthers({ model, others });
  if (chosen.length === 0) return null;
  return (
    <p class="compare-line">
      <Icon name="columns" size={15} />
      <span>{words.also(chosen.map((each) => shortName(each.model)).join(", "))}</span>
      <SmallButton onClick={() => (others.value = [])}>{words.off}</SmallButton>
    </p>
  );
}
