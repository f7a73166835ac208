/** Shared parts of the page. `main.tsx` builds them. */
import type { ReadonlySignal, Signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Api } from "./base/api.ts";
import type { Kept } from "./base/kept.ts";
import type { Notices } from "./base/notices.ts";
import type { Prefs } from "./base/prefs.ts";
import type { Questions } from "./base/questions.ts";
import type { Route } from "./base/route.ts";
import type { Unsent } from "./chat/attachments.ts";
import type { Chats } from "./chat/chats.ts";
import type { ChatDatabase } from "./chat/database.ts";
import type { Library } from "./chat/library.ts";
import type { Speech } from "./chat/speech.ts";
import type { Engine } from "./engine/engine.ts";
import type { WebLlm } from "./engine/webllm.ts";
import type { Admin } from "./gateway/admin.ts";
import type { Highlight } from "./markdown/highlight.ts";
import type { DrawMath } from "./markdown/temml.ts";
import type { Catalogue } from "./models/catalogue.ts";
import type { Jobs } from "./models/jobs.ts";
import type { ToolCalls } from "./tools/calls.ts";
import type { ToolServers } from "./tools/servers.ts";
import type { Models } from "./models/models.ts";
import type { Words } from "./words/index.ts";

export interface App {
  /** All texts of the page, in the current language. */
  readonly words: ReadonlySignal<Words>;
  readonly api: Api;
  readonly chats: Chats;
  readonly db: ChatDatabase;
  readonly library: Library;
  readonly toolServers: ToolServers;
  readonly calls: ToolCalls;
  readonly models: Models;
  readonly engine: Engine;
  readonly webllm: WebLlm;
  readonly admin: Admin;
  readonly jobs: Jobs;
  readonly catalogue: Catalogue;
  readonly notices: Notices;
  readonly questions: Questions;
  readonly prefs: Prefs;
  readonly speech: Speech;
  /** Lasts as long as this tab. */
  readonly session: Kept;
  readonly route: ReadonlySignal<Route>;
  readonly go: (route: Route) => void;
  /** The dialog over the page. */
  readonly over: Signal<"search" | "keys" | "help" | "prompts" | undefined>;
  /** True if the list of chats covers a narrow page. */
  readonly isMenuOpen: Signal<boolean>;
  /** Model files that the user dropped or chose, to create a model. */
  readonly modelFiles: Signal<readonly File[]>;
  /** Files that the user dropped, to attach to the message being written. */
  readonly toAttach: Signal<readonly File[]>;
  /** By draft. */
  readonly unsent: Map<string, Unsent>;
  readonly loadHighlight: () => Promise<Highlight>;
  readonly loadMath: () => Promise<DrawMath>;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error("a part of the page outside of it");
  return app;
}

/** The texts of the page; a component that uses them is rendered again when the language changes. */
export const useWords = (): Words => useApp().words.value;
