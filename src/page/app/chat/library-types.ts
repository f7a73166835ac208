/** Records of this browser that belong to no single chat. */

export interface Folder {
  readonly id: string;
  readonly name: string;
  /** True hides the chats in it. */
  readonly isClosed?: boolean;
}

/** A saved text: a `message` goes into the field where messages are written, a `system` prompt begins a chat. */
export interface Prompt {
  readonly id: string;
  readonly kind: "message" | "system";
  readonly name: string;
  readonly text: string;
}

export interface Records {
  readonly folders: Folder;
  readonly prompts: Prompt;
}

export type RecordKind = keyof Records;
