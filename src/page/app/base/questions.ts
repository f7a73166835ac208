/** Questions of the page to its user: for a text, such as a name, or whether to go ahead. */
import { signal, type ReadonlySignal } from "@preact/signals";

export interface Question {
  readonly title: string;
  readonly text?: string;
  /** What the button says that goes ahead. */
  readonly action: string;
  readonly isDangerous?: boolean;
  /** Present: a text is asked for. */
  readonly field?: { readonly label: string; readonly first: string };
}

export interface Questions {
  readonly open: ReadonlySignal<Question | undefined>;
  /** The text that was given, or `""` where none was asked for; undefined: the answer was no. */
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
      answer(undefined); // of the question before
      open.value = question;
      return new Promise((take) => (resolve = take));
    },
  };
}
