/** A new chat: a greeting, and suggestions. */
import { useApp, useWords } from "../context.ts";
import { Mark } from "../base/icons.tsx";
import { bytesText } from "../base/format.ts";
import { reasonOf } from "../base/reason.ts";
import { SuggestedModels } from "../models/catalogue-view.tsx";
import { isDemo } from "../models/models.ts";
import { Button } from "../base/controls.tsx";

/** A text for the composer. */
export interface Suggestion {
  readonly text: string;
  /** True also opens the file picker. */
  readonly wantsFile?: boolean;
}

export function Greeting() {
  const { models, api } = useApp();
  const words = useWords();
  const problem = models.problem.value;
  return (
    <div class="welcome">
      <Mark size={44} />
      <h2>{words.welcome.title}</h2>
      {problem !== undefined && api.isReachable.value && <p class="problem">{reasonOf(words, problem)}</p>}
    </div>
  );
}

export function Suggestions({ onChoose }: { onChoose: (suggestion: Suggestion) => void }) {
  const { models } = useApp();
  const { welcome: words } = useWords();
  const chatting = models.chatting.value;
  return (
    <div class="suggestions">
      {chatting.length > 0 && (
        <div class="row">
          {words.prompts.map((prompt) => (
            <Button look="pill" onClick={() => onChoose(prompt)}>
              {prompt.label}
            </Button>
          ))}
        </div>
      )}
      {models.list.value && chatting.length === 0 && (
        <p>
          {words.noModel} <a href="#/models">{words.getOne}</a>
        </p>
      )}
      {chatting.length > 0 && chatting.every(isDemo) && (
        <p>
          {words.demo(bytesText(chatting[0]!.size))} <a href="#/models">{words.getUseful}</a>
        </p>
      )}
      {models.list.value && chatting.every(isDemo) && <SuggestedModels />}
      <p class="quiet">{words.private}</p>
    </div>
  );
}
