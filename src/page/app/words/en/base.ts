/** English: the frame of the page, and what every view uses. */

export const base = {
  skip: "Skip to content",
  chatsAndViews: "Chats and views",
  newChat: "New chat",
  search: "Search",
  models: "Models",
  gateway: "Gateway",
  system: "System",
  serverGone: "The server cannot be reached. This page keeps trying to connect. Your chats are safe in this browser.",
  notKept: (why: string) => `Chats will be lost when you close this tab. The browser does not store them: ${why}`,
  unreachable: "The server is unreachable. Try again when it is back.",
  undo: "Undo",
  close: "Close",
  cancel: "Cancel",
  themes: { auto: "automatic", light: "light", dark: "dark" },
  theme: (now: string) => `Colours: ${now}`,
  changeTheme: (now: string, next: string) => `Colours: ${now}. Change to ${next}.`,
};
