/** German: the gateway, the system, and the dialogs of the page. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";

export const gateway: Words["gateway"] = {
  parts: "Bereiche des Gateways",
  deliveries: "Zustellungen",
  mappings: "Zuordnungen",
  approvals: "Freigaben",
  findings: "Befunde",
  paused: "Angehalten",
  waiting: "Wartend",
  running: "Laufend",
  replies: "Offene Antworten",
  messages: "Offene Nachrichten",
  off: {
    title: "Andere Systeme ein Modell wecken lassen",
    text: "Aus einem GitHub-Issue wird eine Zusammenfassung in Slack, aus einem fehlgeschlagenen Build eine Erklärung. Das Gateway nimmt Webhooks an, lässt ein Modell laufen und sendet dessen Antwort in einen Chat.",
    how: "Das Gateway ist ausgeschaltet. Dies in hearth.json5 eintragen, die drei Variablen setzen und den Server neu starten:",
    copy: "Konfiguration kopieren",
    locked:
      "Das Gateway läuft, aber diese Ansicht ist gesperrt, weil kein Token gesetzt ist. Dafür gateway.token in hearth.json5 eintragen und den Server neu starten.",
    docs: "Die Datei docs/webhooks.md von Hearth erklärt jede Einstellung.",
  },
  token: "Gateway-Token",
  tokenHint: "gateway.token aus hearth.json5 eingeben. Dieser Tab behält es, bis er geschlossen wird.",
  tokenRefused: "Dieses Token ist falsch. Bitte gateway.token aus hearth.json5 eingeben.",
  open: "Öffnen",
};

export const pageSettings: Words["pageSettings"] = {
  title: "Diese Seite",
  language: "Sprache",
  browserLanguage: "Sprache des Browsers",
  titles: "Titel von Chats vom Modell schreiben lassen",
  titlesHint:
    "Nach der ersten Antwort, wenn sonst nichts beantwortet wird. Modelle unter einer Milliarde Parameter werden nicht gefragt.",
};

export const approvals: Words["approvals"] = {
  none: "Kein Aufruf wartet auf eine Freigabe.",
  allow: "Einmal erlauben",
  refuse: "Ablehnen",
  until: (time) => `wartet bis ${time}`,
  allowed: (tool) => `Der Aufruf von ${tool} ist erlaubt.`,
  refused: (tool) => `Der Aufruf von ${tool} ist abgelehnt.`,
};

export const deliveries: Words["deliveries"] = {
  state: "Status",
  any: "Alle",
  path: "Pfad",
  anyPath: "alle",
  none: "Noch keine Zustellungen.",
  earlier: "Frühere Zustellungen anzeigen",
  replayed: "Wiederholung",
  title: "Zustellung",
  replay: "Wiederholen",
  replayDead: "Alle wiederholen",
  replayReplies: "Alle Antworten erneut senden",
  deadCount: (count) =>
    counted("de", count, {
      one: "# Lauf wurde aufgegeben. Er läuft noch einmal.",
      other: "# Läufe wurden aufgegeben. Sie laufen noch einmal, die ältesten zuerst.",
    }),
  lostCount: (count) =>
    counted("de", count, {
      one: "# Antwort ist gescheitert. Sie wird erneut gesendet, ohne das Modell zu fragen.",
      other: "# Antworten sind gescheitert. Sie werden erneut gesendet, ohne das Modell zu fragen.",
    }),
  replaysLeft: (count) => `Noch zu tun: ${count}`,
  replayedAll: (done, skipped) => `Wiederholt: ${done}${skipped > 0 ? `, übersprungen: ${skipped}` : ""}`,
  headers: "Header",
  body: "Body",
  bodyBase64: "Body, als Base64",
  noBody: "Der Body wurde nicht aufbewahrt, weil hooks.queue.keepBodies ausgeschaltet ist.",
  received: "Empfangen",
  about: "Betreff",
  mapping: "Zuordnung",
  noMapping: "keine",
  sender: "Absender",
  request: "Anfrage",
  wake: "Wecken",
  turn: "Agentenlauf",
  reply: (state) => `Antwort: ${state}`,
  fate: ({ state, lost }) => (lost === undefined ? state : `${state}, Antwort: ${lost}`),
  prompt: "Prompt",
};

export const setup: Words["setup"] = {
  noMappings: "Es gibt keine Zuordnungen. Nur /wake und /agent nehmen Webhooks an.",
  tryIt: "Ausprobieren",
  everyPath: "jeder Pfad",
  repliesTo: (channel) => `antwortet an ${channel}`,
  preset: (name) => `Preset ${name}`,
  tryTitle: (mapping) => `${mapping} ausprobieren`,
  tryAbout: "Zeigt, was die Zuordnung aus einem Payload macht. Nichts wird gespeichert oder gesendet.",
  payload: "Payload, als JSON",
  headers: "Header, je einer pro Zeile, etwa X-GitHub-Event: issues",
  notHeader: (line) => `„${line}“ ist kein Header. Erwartet: NAME: VALUE`,
  notJson: "Der Payload ist kein gültiges JSON.",
  try: "Ausprobieren",
  noFindings: "Die Prüfung hat keine Probleme gefunden.",
};

export const system: Words["system"] = {
  metrics: "Metriken",
  machine: "Dieser Rechner",
  facts: {
    version: "Version",
    backend: "Backend",
    device: "Gerät",
    memory: "Arbeitsspeicher",
    disk: "Festplatte",
    running: "Laufende Antworten",
    waiting: "Wartende Anfragen",
    load: "Geladene Modelle seit dem Start",
    crash: "Abstürze seit dem Start",
  },
  memory: (free, total) => `${free} von ${total} frei`,
  free: (size) => `${size} frei`,
  settings: "Einstellungen des Servers",
  settingsFrom:
    "Gesetzt in hearth.json5, mit Umgebungsvariablen oder beim Aufruf. Der Server liest sie, wenn er startet.",
  names: {
    host: "Adresse",
    backend: "Backend",
    num_parallel: "Gleichzeitige Antworten je Modell",
    max_loaded_models: "Modelle im Speicher",
    max_queue: "Anfragen, die warten dürfen",
    keep_alive: "Modelle bleiben im Speicher",
    context_length: "Kontext, Tokens",
    gpu_memory: "GPU-Speicher",
    api_keys: "API-Schlüssel",
    debug: "Debug-Protokoll",
  },
  auto: "automatisch",
  forever: "für immer",
  on: "ein",
  off: "aus",
  none: "keine",
  key: "Dieser Tab hat einen API-Schlüssel",
  forgetKey: "Schlüssel vergessen",
  forgotKey: "Der API-Schlüssel dieses Tabs wurde vergessen.",
  requests: "Letzte Anfragen",
  requestTable: "Tabelle der letzten Anfragen",
  noRequests: "Noch keine Anfragen außer denen dieser Seite.",
  columns: {
    time: "Zeit",
    request: "Anfrage",
    status: "Status",
    took: "Dauer",
    model: "Modell",
    tokens: "Tokens",
    key: "Schlüssel",
  },
};

export const keyDialog: Words["keyDialog"] = {
  title: "Dieser Server verlangt einen API-Schlüssel",
  refused: "Der Schlüssel ist falsch. Wer diesen Server betreibt, kann einen gültigen nennen.",
  about:
    "Für diesen Server sind API-Schlüssel gesetzt (HEARTH_API_KEYS). Dieser Tab behält den Schlüssel, bis er geschlossen wird.",
  key: "API-Schlüssel",
  enter: "Schlüssel eingeben",
  use: "Diesen Schlüssel verwenden",
};

export const keyboard: Words["keyboard"] = {
  title: "Tastatur",
  mac: "Auf einem Mac gilt ⌘ statt Ctrl.",
  newChat: "Neuer Chat",
  search: "Chats durchsuchen",
  write: "Nachricht schreiben",
  send: "Senden",
  newLine: "Neue Zeile",
  stop: "Antwort stoppen oder Geöffnetes schließen",
  editLast: "Letzte eigene Nachricht bearbeiten, wenn noch nichts geschrieben ist",
  settings: "Einstellungen dieses Chats",
  undo: "Löschen rückgängig machen, 10 Sekunden lang",
  list: "Diese Liste",
};

export const help: Words["help"] = {
  title: "Hilfe",
  topics: [
    {
      title: "Ein Modell holen",
      text: "Modelle öffnen und einen Namen eingeben, zum Beispiel llama3.2:1b. Wird die Seite geschlossen, hält der Download an; er lässt sich später fortsetzen.",
    },
    {
      title: "Chatten",
      text: "Dateien lassen sich mit der Büroklammer anhängen, hineinziehen oder einfügen. Wird eine Nachricht bearbeitet, entsteht eine neue Version; die alte bleibt erhalten. Die Einstellungen oben rechts ändern den Systemprompt und das Sampling.",
    },
    {
      title: "Die eigenen Daten",
      text: "Chats bleiben in diesem Browser. Vor dem Löschen seiner Daten sollten sie über das Menü neben „Chats“ exportiert werden.",
    },
    {
      title: "Andere Programme",
      text: "Hearth spricht die APIs von Ollama, OpenAI und Anthropic. Im Client die Adresse dieser Seite eintragen.",
    },
    {
      title: "Kommandozeile",
      text: "hearth -h listet alle Befehle auf. Der Ordner docs von Hearth erklärt jede Einstellung.",
    },
  ],
  api: "API-Referenz",
};

export const markdown: Words["markdown"] = {
  copied: "Kopiert",
  copyCode: "Code kopieren",
  code: "Code",
  codeIn: (language) => `Code in ${language}`,
  table: "Tabelle",
};
