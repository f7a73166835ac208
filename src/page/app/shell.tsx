/** The frame of the page: chats and views at the side, the current view in the middle, notices at the foot. */
import { useEffect, useLayoutEffect } from "preact/hooks";
import { ChatList } from "./chat/list.tsx";
import { ChatView } from "./chat/view.tsx";
import { PromptsDialog } from "./chat/prompts-dialog.tsx";
import { SearchDialog } from "./chat/search-dialog.tsx";
import { useApp, useWords } from "./context.ts";
import { HelpDialog } from "./base/help.tsx";
import { Icon, Mark, type IconName } from "./base/icons.tsx";
import { KeyDialog } from "./base/key-dialog.tsx";
import { KeysDialog, onPageKey } from "./base/keys.tsx";
import { NoticeList } from "./base/notice-list.tsx";
import { QuestionDialog } from "./base/question-dialog.tsx";
import { THEMES, type Theme } from "./base/prefs.ts";
import { routeText, type View } from "./base/route.ts";
import { GatewayView } from "./gateway/view.tsx";
import { DropZone } from "./drop-zone.tsx";
import { ModelFilesDialog } from "./models/model-files-dialog.tsx";
import { SystemView } from "./system/view.tsx";
import { ModelsView } from "./models/view.tsx";
import { IconButton, SmallButton } from "./base/controls.tsx";

const LINKS = [
  { view: "models", icon: "box" },
  { view: "gateway", icon: "hook" },
  { view: "system", icon: "gauge" },
] as const satisfies readonly { readonly view: View; readonly icon: IconName }[];

export function Shell() {
  const app = useApp();
  const { route, over, isMenuOpen } = app;
  const { view } = route.value;
  // not after the first frame: a key may be pressed as soon as the page is shown
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => onPageKey(app, event);
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => void (isMenuOpen.value = false), [route.value]);
  return (
    <div class="app" data-menu={isMenuOpen.value ? "open" : "closed"} data-view={view}>
      <a class="skip" href="#main" onClick={focusMain}>
        {useWords().base.skip}
      </a>
      <Sidebar />
      {isMenuOpen.value && <div class="shade" onClick={() => (isMenuOpen.value = false)} />}
      <main id="main" tabIndex={-1} inert={isMenuOpen.value}>
        <ServerBanner />
        {view === "chat" && <ChatView />}
        {view === "models" && <ModelsView />}
        {view === "gateway" && <GatewayView />}
        {view === "system" && <SystemView />}
      </main>
      <NoticeList />
      <KeyDialog />
      <QuestionDialog />
      <DropZone />
      <ModelFilesDialog />
      {over.value === "search" && <SearchDialog />}
      {over.value === "keys" && <KeysDialog />}
      {over.value === "prompts" && <PromptsDialog />}
      {over.value === "help" && <HelpDialog />}
    </div>
  );
}

function focusMain(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}

function Sidebar() {
  const { over, go, route } = useApp();
  const { base, keyboard, help } = useWords();
  return (
    <nav class="sidebar" aria-label={base.chatsAndViews}>
      <div class="brand">
        <Mark />
        <span>Hearth</span>
        <ThemeButton />
      </div>
      <div class="side-actions">
        <button type="button" class="side-button strong" onClick={() => go({ view: "chat" })}>
          <Icon name="plus" />
          {base.newChat}
        </button>
        <button type="button" class="side-button" onClick={() => (over.value = "search")}>
          <Icon name="search" />
          {base.search}
          <kbd>{isApple() ? "⌘K" : "Ctrl K"}</kbd>
        </button>
      </div>
      <ChatList />
      <div class="side-links">
        {LINKS.map(({ view, icon }) => (
          <a
            class="side-button"
            href={routeText({ view })}
            aria-current={route.value.view === view ? "page" : undefined}
          >
            <Icon name={icon} />
            {base[view]}
          </a>
        ))}
        <div class="side-foot">
          <button type="button" class="side-button small" onClick={() => (over.value = "keys")}>
            {keyboard.title}
          </button>
          <button type="button" class="side-button small" onClick={() => (over.value = "help")}>
            {help.title}
          </button>
        </div>
      </div>
    </nav>
  );
}

const isApple = (): boolean => /Mac|iPhone|iPad/.test(navigator.userAgent);

const THEME_ICONS: Readonly<Record<Theme, IconName>> = { auto: "auto", light: "sun", dark: "moon" };

function ThemeButton() {
  const { theme } = useApp().prefs;
  const { base } = useWords();
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  return (
    <IconButton
      icon={THEME_ICONS[theme.value]}
      label={base.changeTheme(base.themes[theme.value], base.themes[next])}
      title={base.theme(base.themes[theme.value])}
      onClick={() => (theme.value = next)}
    />
  );
}

function ServerBanner() {
  const { api } = useApp();
  const { base, keyDialog } = useWords();
  return (
    <div role="status" aria-live="polite">
      {api.isKeyMissing.value && (
        <p class="banner">
          <Icon name="key" />
          {keyDialog.title}
          <SmallButton onClick={() => (api.isKeyMissing.value = false)}>{keyDialog.enter}</SmallButton>
        </p>
      )}
      {!api.isReachable.value && (
        <p class="banner">
          <Icon name="warn" />
          {base.serverGone}
        </p>
      )}
    </div>
  );
}
