/** Questions of the page to its user: for a text, such as a name, or for a confirmation. */
import { signal, type ReadonlySignal } from "@preact/signals";

export interface Question {
  readonly title: string;
  readonly text?: string;
  /** Label of the confirming button. */
  readonly action: string;
  readonly isDangerous?: boolean;
  /** Present: asks for a text. */
  readonly field?: { readonly label: string; readonly first: string };
}

export interface Questions {
  readonly open: ReadonlySignal<Question | undefined>;
  /** The entered text, or `""` for a confirmation; undefined: cancelled. */
  ask(question: Question): Promise<string | undefined>;
  answer(text: string | undefined): void;
}

export function makeQuestions(): Questions {
  const open = signal<Question | undefined>(undefined);
  let resolve: (text: string | undefined) => void = () => {};
  const answer = (text: string | undefined): void => {
    open.value = undefined;
    resolve(text);
  };
  return {
    open,
    answer,
    ask(question) {
      answer(undefined); // cancels the previous question
      open.value = question;
      return new Promise((take) => (resolve = take));
    },
  };
}
