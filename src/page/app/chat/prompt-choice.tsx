/** Uses saved prompts: in a menu, after `/` in the composer, and as system prompts. */
import { useComputed, useSignal, type Signal } from "@preact/signals";
import { useId } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { Menu } from "../base/menu.tsx";
import type { Prompt } from "./library-types.ts";
import { Button, SmallButton } from "../base/controls.tsx";

const ofKind = (prompts: readonly Prompt[], kind: Prompt["kind"]): Prompt[] =>
  prompts.filter((each) => each.kind === kind);

export function PromptMenu({ onChoose }: { onChoose: (text: string) => void }) {
  const { library, over } = useApp();
  const { prompts: words } = useWords();
  return (
    <Menu
      label={words.title}
      items={() => [
        ...ofKind(library.lists.peek().prompts, "message").map(({ name, text }) => ({
          label: name,
          onChoose: () => onChoose(text),
        })),
        { label: words.manage, icon: "edit" as const, onChoose: () => (over.value = "prompts") },
      ]}
    >
      <Icon name="book" />
    </Menu>
  );
}

/** Prompts whose names match a text such as `/sum`; names that begin with it come first. */
function matchesOf(prompts: readonly Prompt[], text: string): Prompt[] {
  const [, sought] = /^\/([^\n/]{0,60})$/.exec(text) ?? [];
  if (sought === undefined) return [];
  const typed = sought.toLowerCase();
  const isStart = ({ name }: Prompt): boolean => name.toLowerCase().startsWith(typed);
  const found = ofKind(prompts, "message").filter(({ name }) => name.toLowerCase().includes(typed));
  return [...found.filter(isStart), ...found.filter((each) => !isStart(each))].slice(0, 8);
}

/** Completes `/name` in a field. */
export function useCompletion(content: Signal<string>, onChoose: (text: string) => void) {
  const { library } = useApp();
  const id = useId();
  const chosen = useSignal(0);
  /** The text for which the list was closed with Escape. */
  const closedAt = useSignal<string | undefined>(undefined);
  const matches = useComputed(() =>
    closedAt.value === content.value ? [] : matchesOf(library.lists.value.prompts, content.value),
  );
  const list = matches.value;
  const at = Math.min(chosen.value, list.length - 1);
  const choose = (prompt: Prompt): void => {
    chosen.value = 0;
    onChoose(prompt.text);
  };
  /** Returns true if the list handled the key. */
  const onKeyDown = (event: KeyboardEvent): boolean => {
    const match = list[at];
    if (!match) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) chosen.value = (at + step + list.length) % list.length;
    else if ((event.key === "Enter" && !event.shiftKey) || event.key === "Tab") choose(match);
    else if (event.key === "Escape") closedAt.value = content.value;
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  const field = {
    "aria-autocomplete": "list",
    "aria-controls": list.length > 0 ? id : undefined,
    "aria-activedescendant": list.length > 0 ? `${id}-${at}` : undefined,
  } as const;
  return { onKeyDown, field, popup: <Matches {...{ id, list, at, choose }} /> };
}

interface MatchesProps {
  readonly id: string;
  readonly list: readonly Prompt[];
  readonly at: number;
  readonly choose: (prompt: Prompt) => void;
}

function Matches({ id, list, at, choose }: MatchesProps) {
  const { prompts: words } = useWords();
  if (list.length === 0) return null;
  return (
    <div class="completion palette-list" role="listbox" id={id} aria-label={words.title}>
      {list.map((prompt, i) => (
        <div
          key={prompt.id}
          role="option"
          id={`${id}-${i}`}
          aria-selected={i === at}
          onPointerDown={(event) => event.preventDefault()} // the field keeps the focus
          onClick={() => choose(prompt)}
        >
          <strong>{prompt.name}</strong>
          <span>{prompt.text.slice(0, 120)}</span>
        </div>
      ))}
    </div>
  );
}

interface SystemProps {
  readonly system: string;
  readonly onChange: (system: string) => void;
}

/** Chooses a saved system prompt, or saves the current one. */
export function SystemChoice({ system, onChange }: SystemProps) {
  const { library, questions } = useApp();
  const { prompts: words, base } = useWords();
  const list = ofKind(library.lists.value.prompts, "system");
  const saved = list.find(({ text }) => text === system);
  const save = async (): Promise<void> => {
    const field = { label: base.name, first: "" };
    const name = await questions.ask({ title: words.saveSystem, action: base.save, field });
    if (name) await library.addPrompt("system", name, system);
  };
  if (list.length === 0 && system.trim() === "") return null;
  return (
    <div class="row">
      {list.length > 0 && (
        <select
          class="input system-choice"
          aria-label={words.kinds.system.heading}
          value={saved?.id ?? ""}
          onChange={(event) => {
            const found = list.find(({ id }) => id === event.currentTarget.value);
            if (found) onChange(found.text);
          }}
        >
          <option value="" disabled>
            {words.choose}
          </option>
          {list.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      )}
      {system.trim() !== "" && !saved && <SmallButton onClick={() => void save()}>{words.saveSystem}</SmallButton>}
    </div>
  );
}

/** Saved system prompts to begin a new chat with. */
export function SystemPills({ system, onChange }: SystemProps) {
  const { library } = useApp();
  const { prompts: words } = useWords();
  const list = ofKind(library.lists.value.prompts, "system");
  if (list.length === 0) return null;
  return (
    <div class="row system-pills" role="group" aria-label={words.kinds.system.heading}>
      {list.slice(0, 8).map(({ id, name, text }) => (
        <Button
          look="pill small"
          key={id}
          aria-pressed={text === system}
          onClick={() => onChange(text === system ? "" : text)}
        >
          {name}
        </Button>
      ))}
    </div>
  );
}
