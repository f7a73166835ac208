/** Builds the parts of the page, and shows it. */
import { computed, signal } from "@preact/signals";
import { render } from "preact";
import { makeApi } from "./base/api.ts";
import { makeKept } from "./base/kept.ts";
import { makeNotices } from "./base/notices.ts";
import { makePrefs } from "./base/prefs.ts";
import { makeQuestions } from "./base/questions.ts";
import { makeRoute } from "./base/route.ts";
import { notSaved } from "./chat/ends.ts";
import { serverAnswerer, watchLoad } from "./chat/answers.ts";
import type { ChatParts } from "./chat/chat-types.ts";
import { Chats } from "./chat/chats.ts";
import { openDatabase, type ChatDatabase } from "./chat/database.ts";
import { Library } from "./chat/library.ts";
import { makeSpeech } from "./chat/speech.ts";
import { writeTitles } from "./chat/title-writer.ts";
import { AppContext, type App } from "./context.ts";
import { memoryDatabase } from "./chat/memory-database.ts";
import { Catalogue } from "./models/catalogue.ts";
import { Jobs } from "./models/jobs.ts";
import { Engine } from "./engine/engine.ts";
import { WebLlm } from "./engine/webllm.ts";
import { Admin } from "./gateway/admin.ts";
import { Models } from "./models/models.ts";
import { ToolCalls } from "./tools/calls.ts";
import { ToolServers } from "./tools/servers.ts";
import { Shell } from "./shell.tsx";
import { makeWords } from "./words/index.ts";

async function start(): Promise<void> {
  const notices = makeNotices(window);
  const [kept, session] = [makeKept(() => localStorage), makeKept(() => sessionStorage)];
  const root = document.documentElement;
  const prefs = makePrefs(kept, root);
  const words = await makeWords({ language: prefs.language, preferred: navigator.languages, root });
  const db = await openOrForget((error) => notices.say(words.peek().base.notKept(String(error))));
  const api = makeApi({ storage: session });
  const models = new Models(api);
  const engine = new Engine({
    api,
    backend: () => prefs.backend.value,
    notify: notices.say,
    words: words.peek.bind(words),
  });
  const webllm = new WebLlm(api, words.peek.bind(words));
  const answerers = { server: serverAnswerer(api), page: engine.answer, webllm: webllm.answer };
  const toolServers = new ToolServers(api, (server, why) => notices.say(words.peek().toolServers.missing(server, why)));
  const chats = makeChats({ db, answerers, notices, words, api, toolServers });
  const library = new Library({
    db,
    channel: channelOf("hearth-library"),
    onError: (error) => notices.say(words.peek().chat.notSaved(notSaved(words.peek(), error))),
  });
  const { route, go } = makeRoute();
  const app: App = {
    words,
    api,
    chats,
    db,
    library,
    toolServers,
    calls: makeCalls({ chats, notices, words, api, toolServers }),
    models,
    jobs: new Jobs({ api, storage: kept, onDone: () => void models.refresh() }),
    catalogue: new Catalogue(api),
    notices,
    questions: makeQuestions(),
    session,
    prefs,
    speech: makeSpeech(globalThis.speechSynthesis, () => root.lang || "en"),
    engine,
    webllm,
    admin: new Admin(api, session),
    route,
    go,
    over: signal(undefined),
    isMenuOpen: signal(false),
    modelFiles: signal([]),
    toAttach: signal([]),
    unsent: new Map(),
    loadHighlight: once(async () => (await import("./markdown/highlight.ts")).makeHighlight()),
    loadMath: once(async () => (await import("./markdown/temml.ts")).drawMath),
  };
  chats.running.subscribe(
    (running) => void (running.size === 0 && models.list.peek() && models.refreshLoaded().catch(() => {})),
  );
  writeTitles({ chats, models, answer: answerers.server, isOn: prefs.titles });
  await Promise.all([chats.loadList(), library.load()]);
  const canAsk = computed(() => api.isReachable.value && !api.isKeyMissing.value);
  canAsk.subscribe((can) => void (can && models.refresh()));
  render(
    <AppContext.Provider value={app}>
      <Shell />
    </AppContext.Provider>,
    document.querySelector("#app")!,
  );
}

/** The browser's database; one that lasts as long as the tab if it fails, which `onError` reports. */
const openOrForget = async (onError: (error: unknown) => void): Promise<ChatDatabase> => {
  try {
    return await openDatabase(indexedDB); // reading the global may fail, too
  } catch (error) {
    onError(error);
    return memoryDatabase();
  }
};

type ChatWorld = Pick<App, "db" | "notices" | "words" | "api" | "toolServers"> & Pick<ChatParts, "answerers">;

const makeChats = ({ db, answerers, notices, words, api, toolServers }: ChatWorld): Chats =>
  new Chats({
    db,
    answerers,
    notify: notices.say,
    words: words.peek.bind(words),
    watchLoad: (take) => watchLoad(api, words.peek.bind(words), take),
    offer: toolServers.offer.bind(toolServers),
    locks: locksOf(),
    channel: channelOf("hearth-chats"),
  });

const makeCalls = ({
  api,
  chats,
  toolServers: servers,
  notices,
  words,
}: Pick<App, "api" | "chats" | "toolServers" | "notices" | "words">): ToolCalls =>
  new ToolCalls({
    api,
    chats,
    servers,
    notify: notices.say,
    elsewhere: () => words.peek().chat.elsewhere,
    locks: locksOf(),
  });

const locksOf = (): LockManager | undefined => ("locks" in navigator ? navigator.locks : undefined);

const channelOf = (name: string): BroadcastChannel | undefined =>
  "BroadcastChannel" in globalThis ? new BroadcastChannel(name) : undefined;

/** Starts at the first call, and again after a failure. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let begun: Promise<T> | undefined;
  return () => {
    begun ??= work().catch((error: unknown) => {
      begun = undefined;
      throw error;
    });
    return begun;
  };
}

void start();
