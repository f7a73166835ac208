/** German: the frame of the page, and what every view uses. */
import type { Words } from "../en.ts";

export const base: Words["base"] = {
  skip: "Zum Inhalt springen",
  chatsAndViews: "Chats und Ansichten",
  newChat: "Neuer Chat",
  search: "Suchen",
  models: "Modelle",
  gateway: "Gateway",
  system: "System",
  serverGone:
    "Der Server ist nicht erreichbar. Die Seite versucht weiter, ihn zu erreichen. Die Chats sind in diesem Browser sicher.",
  notKept: (why) =>
    `Die Chats gehen beim Schließen dieses Tabs verloren, weil der Browser sie nicht speichern kann: ${why}`,
  unreachable: "Der Server ist nicht erreichbar. Bitte später noch einmal versuchen.",
  undo: "Rückgängig",
  close: "Schließen",
  cancel: "Abbrechen",
  save: "Speichern",
  delete: "Löschen",
  create: "Erstellen",
  name: "Name",
  noMatches: "Keine Treffer.",
  themes: { auto: "automatisch", light: "hell", dark: "dunkel" },
  theme: (now) => `Farben: ${now}`,
  changeTheme: (now, next) => `Farben: ${now}. Zu „${next}“ wechseln.`,
};
