/** German: chats. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";

export const chats: Words["chats"] = {
  heading: "Chats",
  none: "Chats werden nur in diesem Browser gespeichert.",
  more: (title) => `Mehr zu ${title}`,
  rename: "Umbenennen",
  export: "Exportieren",
  exportMarkdown: "Als Markdown exportieren",
  name: "Name des Chats",
  transfer: "Ordner, Import und Export",
  import: "Chats importieren",
  exportAll: "Alle Chats exportieren",
  files: "Dateien mit Chats",
  imported: (count) => counted("de", count, { one: "# Chat importiert.", other: "# Chats importiert." }),
  notChats: (file) => `${file} enthält keine Chats von Hearth. Bitte eine Datei wählen, die hier exportiert wurde.`,
  deleted: (title, messages) =>
    `„${title}“ mit ${counted("de", messages, { one: "# Nachricht", other: "# Nachrichten" })} gelöscht.`,
  notHere: "Dieser Chat ist nicht in diesem Browser. Er wurde gelöscht oder in einem anderen Browser begonnen.",
  days: { today: "Heute", yesterday: "Gestern", week: "Letzte 7 Tage", month: "Letzte 30 Tage" },
  pinned: "Angeheftet",
  pin: "Oben anheften",
  unpin: "Loslösen",
  move: "In Ordner verschieben",
  moveTitle: (title) => `„${title}“ verschieben`,
  noFolder: "Kein Ordner",
  newFolder: "Neuer Ordner",
  folderName: "Name des Ordners",
  moreFolder: (name) => `Mehr zum Ordner ${name}`,
  deleteFolder: "Ordner löschen, Chats behalten",
  deletedFolder: (name) => `Ordner „${name}“ gelöscht. Seine Chats bleiben erhalten.`,
  search: "Chats durchsuchen",
  results: "Suchergebnisse",
};

export const chat: Words["chat"] = {
  pictureTitle: "Bild",
  you: "Eigene Nachricht",
  answer: "Antwort",
  tool: "Werkzeug",
  beingWritten: (who) => `${who}, wird geschrieben`,
  messages: "Nachrichten",
  toEnd: "Zum Ende springen",
  answering: "Das Modell antwortet",
  anotherTab: "Diese Antwort wird in einem anderen Tab geschrieben.",
  waiting: "Warten auf das Modell",
  writing: "Schreibt",
  thinking: "Denkt nach",
  thoughts: "Gedanken",
  rate: (tokens) => `${tokens} Tokens/s`,
  tokens: (count) => counted("de", count, { one: "# Token", other: "# Tokens" }),
  wasCut: "die ältesten Nachrichten passten nicht mehr und wurden weggelassen",
  inPage: "auf dieser Seite",
  inWebLlm: "auf dieser Seite, mit WebLLM",
  stopped: "Gestoppt.",
  limit: "Die Antwort hat ihre maximale Länge erreicht.",
  goOn: "Fortsetzen",
  goOnWith: "Diese Antwort fortsetzen",
  tryAgain: "Noch einmal versuchen",
  getAnswer: "Antwort anfordern",
  copy: "Kopieren",
  copyMarkdown: "Als Markdown kopieren",
  copied: "Nachricht als Markdown kopiert.",
  systemPrompt: "Systemprompt",
  attachedNames: (names) => `Angehängt: ${names}`,
  pictures: (count) => counted("de", count, { one: "# Bild", other: "# Bilder" }),
  edit: "Bearbeiten",
  readAloud: "Vorlesen",
  stopReading: "Vorlesen stoppen",
  again: "Neu beantworten",
  againWith: (model) => `Mit ${model} neu beantworten`,
  more: "Mehr",
  deleteFrom: (count) =>
    counted("de", count, { one: "Diese Nachricht löschen", other: "# Nachrichten ab hier löschen" }),
  deleted: (count) => counted("de", count, { one: "# Nachricht gelöscht.", other: "# Nachrichten gelöscht." }),
  version: (at, all) => `Version ${at} von ${all}`,
  versionBefore: "Vorherige Version",
  versionAfter: "Nächste Version",
  attached: "Angehängtes Bild",
  calls: (name) => `Ruft ${name} auf`,
  result: (name) => `Ergebnis von ${name}`,
  giveResults: "Ergebnisse senden",
  yourMessage: "Eigene Nachricht",
  theAnswer: "Antwort",
  changed: "Nachricht geändert.",
  discarded: "Änderungen verworfen.",
  askAgain: "Als neue Version senden",
  busy: "Das Modell antwortet noch. Warten oder stoppen.",
  elsewhere: "Ein anderer Tab beantwortet diesen Chat gerade. Dort stoppen oder warten.",
  notSaved: (why) => `Dieser Chat konnte nicht gespeichert werden: ${why}`,
  noRoom: "Der Browser hat keinen Speicherplatz mehr für diese Seite. Bitte einige Chats exportieren und löschen.",
  interrupted: "Die Seite wurde geschlossen, bevor diese Antwort fertig war.",
  noEnd: "Die Antwort brach ohne Angabe eines Grundes ab.",
  lost: "Der Server ist nicht erreichbar. Der bisherige Text ist gespeichert und lässt sich fortsetzen, sobald der Server wieder da ist.",
  unreachable:
    "Der Server ist nicht erreichbar. Die Nachricht ist gespeichert. Bitte noch einmal versuchen, sobald der Server wieder da ist.",
};

export const toolCalls: Words["toolCalls"] = {
  asks: (tool) => `Das Modell möchte ${tool} aufrufen.`,
  wasBegun: "Ein früherer Versuch wurde unterbrochen. Er hat vielleicht schon gewirkt.",
  decisions: { once: "Einmal erlauben", always: "Immer in diesem Chat", no: "Ablehnen", never: "Nie in diesem Chat" },
  underWay: (tool) => `${tool} wird aufgerufen`,
  stop: "Diesen Aufruf stoppen",
  failed: "fehlgeschlagen",
  result: "Ergebnis",
  noOutput: "(keine Ausgabe)",
  shortened: "Nur der Anfang ist zu sehen. Das Modell bekommt das ganze Ergebnis.",
};

export const toolServers: Words["toolServers"] = {
  title: "Werkzeugserver",
  hint: "Das Modell darf die Werkzeuge der eingeschalteten Server aufrufen. Vor jedem Aufruf fragt die Seite nach, außer wenn das Werkzeug in der Konfiguration als harmlos eingetragen ist.",
  tools: (count) => counted("de", count, { one: "# Werkzeug", other: "# Werkzeuge" }),
  always: (tools) => `Ohne Nachfrage aufgerufen: ${tools}.`,
  never: (tools) => `Nie aufgerufen: ${tools}.`,
  askAgain: "Wieder nachfragen",
  missing: (server, why) => `Die Werkzeuge von ${server} fehlen: ${why || "Der Server ist nicht konfiguriert."}`,
};

export const compare: Words["compare"] = {
  title: "Antworten nebeneinander",
  hint: (model, others) =>
    `Bis zu ${counted("de", others, { one: "# Modell", other: "# Modelle" })} wählen, die jede Frage ebenfalls beantworten. ${model} ist das Modell dieses Chats.`,
  also: (models) => `Antwortet auch: ${models}`,
  off: "Ausschalten",
  goOn: "Mit dieser Antwort weitermachen",
  goOnWith: (model) => `Mit dieser Antwort von ${model} weitermachen`,
};

export const prompts: Words["prompts"] = {
  title: "Gespeicherte Prompts",
  manage: "Gespeicherte Prompts bearbeiten",
  kinds: {
    message: {
      heading: "Prompts",
      hint: "/ und den Namen eines Prompts ins Nachrichtenfeld schreiben, um seinen Text einzufügen.",
      add: "Neuer Prompt",
    },
    system: {
      heading: "Gespeicherte Systemprompts",
      hint: "Ein neuer Chat kann mit einem davon beginnen.",
      add: "Neuer Systemprompt",
    },
  },
  text: "Text",
  saveSystem: "Diesen Systemprompt speichern",
  choose: "Gespeicherten Systemprompt wählen",
  edit: (name) => `${name} bearbeiten`,
  delete: (name) => `${name} löschen`,
  deleted: (name) => `Prompt „${name}“ gelöscht.`,
};

export const composer: Words["composer"] = {
  message: "Nachricht",
  placeholder: "Nachricht schreiben",
  send: "Senden",
  stop: "Stoppen",
  attach: "Dateien anhängen",
  files: "Dateien",
  attachments: "Anhänge",
  remove: (name) => `${name} entfernen`,
  picture: "Bild",
  removed: (name) => `${name} entfernt.`,
  context: "Belegter Kontext",
  contextHint: (tokens) => `Dieser Chat belegt etwa ${tokens} Tokens im Kontext des Modells.`,
  contextOf: (used, size) => `${used} von ${size} Tokens`,
  contextUsed: (used) => `${used} Tokens`,
  cannotSee: (model) => `${model} kann keine Bilder sehen.`,
  cannotChat: (model) => `${model} kann nicht chatten: Es erzeugt Embeddings.`,
  gone: (model) => `${model} ist nicht mehr auf dem Server.`,
  use: (model) => `${model} verwenden`,
  getSeeing: "Ein Modell holen, das Bilder sieht",
  getModel: "Ein Modell holen",
  removePictures: "Bilder entfernen",
};

export const attachments: Words["attachments"] = {
  textTooLarge: (file, limit) => `${file} ist zu groß. Eine Textdatei darf höchstens ${limit} haben.`,
  pictureTooLarge: (file, limit) => `${file} ist zu groß. Ein Bild darf höchstens ${limit} haben.`,
  unknown: (file) => `${file} ist weder ein Bild noch eine Textdatei.`,
  documentTooLarge: (file, limit) => `${file} ist zu groß. Ein Dokument darf höchstens ${limit} haben.`,
  tookTooLong: (file) =>
    `Das Lesen von ${file} hat länger als eine Minute gedauert. Bitte nur einen Teil davon anhängen.`,
  faults: {
    protected: (file) =>
      `${file} hat ein Passwort oder stammt aus einer alten Office-Version. Bitte ohne Passwort neu speichern.`,
    noText: (file) =>
      `${file} enthält keinen Text. Ist die Datei ein Scan, lassen sich ihre Seiten als Bilder anhängen.`,
    damaged: (file) => `${file} ist beschädigt und kann nicht gelesen werden.`,
    unpacked: (file) => `${file} ist entpackt zu groß.`,
    unknown: (file) => `${file} ist weder Bild noch Text noch ein Dokument, das diese Seite lesen kann.`,
  },
  reading: (file) => `${file} wird gelesen`,
  readingPage: (file, page) => `${file} wird gelesen, Seite ${page}`,
  stopReading: (file) => `Lesen von ${file} abbrechen`,
  parts: {
    pages: (count) => counted("de", count, { one: "# Seite", other: "# Seiten" }),
    slides: (count) => counted("de", count, { one: "# Folie", other: "# Folien" }),
    sheets: (count) => counted("de", count, { one: "# Tabellenblatt", other: "# Tabellenblätter" }),
  },
  about: (tokens) => `etwa ${tokens}`,
  firstPart: "erster Teil",
  tooLong: (tokens, model, context) =>
    `Die Dateien brauchen ${tokens} Tokens. Der Kontext von ${model} hat ${context}.`,
  useFirst: "Ersten Teil verwenden",
  shortened: (file) => `${file} gekürzt.`,
  unreadable: (file) => `Dieser Browser kann das Bild ${file} nicht lesen.`,
};

export const welcome: Words["welcome"] = {
  title: "Worum geht es?",
  private: "Modelle laufen auf dem eigenen Rechner. Chats bleiben in diesem Browser.",
  prompts: [
    { label: "Eine Geschichte erzählen", text: "Erzähle mir eine kurze Geschichte über einen Leuchtturmwärter." },
    { label: "Eine Datei erklären", text: "Erkläre diese Datei.", wantsFile: true },
    { label: "JSON schreiben", text: "Schreibe ein JSON-Objekt, das ein Buch beschreibt. Antworte nur mit JSON." },
  ],
  demo: (size) => `Das ist ein Demomodell mit ${size}.`,
  getUseful: "Ein brauchbares holen →",
  noModel: "Auf diesem Server gibt es kein Modell, das chatten kann.",
  getOne: "Eines holen →",
};

export const modelMenu: Words["modelMenu"] = {
  button: (model) => `Modell: ${model}`,
  title: "Modell wählen",
  none: "Kein Modell",
  gone: "gelöscht",
  search: "Modelle durchsuchen",
  more: "Weitere Modelle holen …",
  loaded: "im Speicher",
  sees: "kann Bilder sehen",
  calls: "kann Werkzeuge aufrufen",
  thinks: "kann vorher nachdenken",
  where: (place) => `Läuft ${place}`,
  places: { server: "auf dem Server", page: "auf dieser Seite", webllm: "auf dieser Seite, mit WebLLM" },
  whyNot: {
    server: "Dieses Modell läuft nur mit WebLLM.",
    page: "Das Format dieses Modells läuft nicht auf einer Seite.",
    webllm: "Mit WebLLM laufen nur Modelle, die MLC kompiliert hat.",
  },
};

export const options: Words["options"] = {
  title: "Einstellungen dieses Chats",
  systemHint: "Anweisungen an das Modell, vor der ersten Nachricht",
  think: "Nachdenken",
  thinking: { auto: "Vorgabe des Modells", on: "Ein", off: "Aus" },
  names: {
    temperature: "Temperatur",
    top_p: "Top p",
    top_k: "Top k",
    min_p: "Min p",
    repeat_penalty: "Wiederholungs\u00adstrafe",
    seed: "Seed",
    num_predict: "Maximale Antwortlänge, Tokens",
    num_ctx: "Kontext, Tokens",
  },
  notInside: (min, max, isDecimal) =>
    `Nicht verwendet. Erwartet wird eine ${isDecimal ? "Zahl" : "ganze Zahl"} von ${min} bis ${max}.`,
  modelsOwn: "Vorgabe",
  tools: "Werkzeuge, als JSON",
  notTools: 'Das ist keine Liste von Werkzeugen. Erwartet wird JSON wie [{"type": "function", …}].',
};
