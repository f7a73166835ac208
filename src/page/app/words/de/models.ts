/** German: the models of the server, and of this page. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";
import { descriptions } from "./catalogue.ts";

export const models: Words["models"] = {
  pullLabel: "Name des Modells, das heruntergeladen werden soll",
  pullHint: "Modell herunterladen: llama3.2:1b, hf.co/owner/model-GGUF:Q4_K_M",
  pull: "Herunterladen",
  list: "Modelle auf dem Server",
  none: "Noch keine Modelle. Eines lässt sich mit seinem Namen herunterladen, zum Beispiel llama3.2:1b.",
  chat: "Chatten",
  more: (model) => `Mehr zu ${model}`,
  show: "Details",
  load: "Jetzt laden",
  unload: "Entladen",
  update: "Aktualisieren",
  createFrom: "Modell daraus erstellen",
  copyTitle: (model) => `${model} kopieren`,
  copyName: "Name der Kopie",
  deleted: (model, size) => `${model} gelöscht (${size}).`,
  embeds: "erzeugt Embeddings",
  inMemory: (size) => `Im Speicher: ${size}`,
  onCpu: "auf der CPU",
  onGpu: (percent) => `${percent}\u00a0% auf der GPU`,
  context: (tokens) => `Kontext von ${tokens} Tokens`,
  leaves: (when) => `wird ${when} entladen`,
  stays: "bleibt geladen",
};

export const catalogue: Words["catalogue"] = {
  title: "Katalog",
  describe: (name, english) => descriptions[name] ?? english,
  purpose: "Zweck",
  all: "Alle",
  purposes: { chat: "Chat", reasoning: "Nachdenken", code: "Code", vision: "Bilder", embedding: "Embeddings" },
  installed: "installiert",
  chatWith: (model) => `Mit ${model} chatten`,
  download: (model) => `${model} herunterladen`,
  pausing: (model) => `Download von ${model} anhalten`,
  fits: (free) => `Passt: ${free} Speicher sind frei.`,
  tight: (reason) => `Knapp: ${reason}.`,
  tooLarge: (reason) => `Passt nicht: ${reason}.`,
  updated: (month) => `Stand: ${month}. Größen sind ungefähr. Andere Modelle: oben mit ihrem Namen.`,
  suggested: "Vorgeschlagene Modelle",
};

export const jobs: Words["jobs"] = {
  title: "Downloads",
  pause: "Anhalten",
  resume: "Fortsetzen",
  forget: "Entfernen",
  forgot: (model) => `Download von ${model} entfernt.`,
  withoutTls: "Ohne TLS herunterladen",
  progress: (model) => `Fortschritt von ${model}`,
  paused: "Angehalten. Der Server behält den heruntergeladenen Teil eine Woche lang.",
  stopped: "Gestoppt.",
  checking: "Datei wird geprüft",
  uploading: "Wird hochgeladen",
  waiting: "Wartet",
  downloading: "Wird heruntergeladen",
  downloaded: "Heruntergeladen.",
  created: "Erstellt.",
  amount: (done, total) => `${done} von ${total}`,
  rate: (size) => `${size}/s`,
  left: (time) => `noch ${time}`,
};

export const modelFiles: Words["modelFiles"] = {
  title: "Modell aus Dateien hinzufügen",
  add: "Dateien hinzufügen",
  choose: "Modelldateien",
  action: "Hinzufügen",
  replaces: (model) => `Das Modell ${model} gibt es schon. Es wird ersetzt.`,
  imagePart: "für Bilder",
  busy: (model) => `${model} wird bereits heruntergeladen oder erstellt.`,
  empty: (file) => `${file} ist leer.`,
  notGguf: (file) => `${file} ist keine GGUF-Datei. Sie wurde umbenannt, oder ihr Download ist unvollständig.`,
  unreadable: (file) => `Der Browser kann ${file} nicht lesen. Die Datei wurde verschoben oder geändert.`,
  missing: (count, files) =>
    `${counted("de", count, { one: "Ein Teil des Modells fehlt:", other: "# Teile des Modells fehlen:" })} ${files}. Bitte alle Teile zusammen wählen.`,
  several: "Diese Dateien sind mehr als ein Modell. Bitte jedes Modell einzeln hinzufügen.",
  onlyImages: "Diese Datei ist nur der Teil eines Modells, der Bilder liest. Die GGUF-Datei des Modells gehört dazu.",
  drop: "Dateien hier ablegen, um sie anzuhängen. Aus GGUF-Dateien wird ein Modell.",
};

export const create: Words["create"] = {
  title: "Modell erstellen",
  modelfile: "Modelfile",
  quantize: "Quantisieren",
  asIs: "Nein",
};

export const show: Words["show"] = {
  reading: "Modell wird gelesen …",
  parameters: "Parameter",
  template: "Vorlage",
  license: "Lizenz",
  copy: (part) => `Kopieren: ${part}`,
  facts: {
    architecture: "Architektur",
    parameter_size: "Parameter",
    quantization_level: "Quantisierung",
    context_length: "Kontext, Tokens",
    embedding_length: "Embedding-Länge",
    block_count: "Blöcke",
    "attention.head_count": "Attention-Köpfe",
    vocab_size: "Vokabular",
    expert_count: "Experten",
  },
};

export const inPage: Words["inPage"] = {
  title: "Modelle auf dieser Seite",
  insecure: "Modelle laufen auf dieser Seite nur über HTTPS oder auf localhost.",
  about:
    "Das Modell eines Chats kann statt auf dem Server auf dieser Seite laufen. Die Seite lädt das Modell einmal herunter und behält es in diesem Browser. Modelle, die MLC kompiliert hat, laufen nur hier, mit WebLLM, das WebGPU braucht.",
  runsOn: "Ausführen auf",
  backends: {
    auto: "dem Schnellsten, was es gibt",
    webgpu: "der Grafikkarte (WebGPU)",
    wasm: "dem Prozessor (WebAssembly)",
    cpu: "der Referenzimplementierung (langsam)",
  },
  look: "Zwischengespeicherte Modelle anzeigen",
  nothing: "Keine zwischengespeicherten Modelle.",
  used: (usage, quota) => `${usage} von ${quota} belegt`,
  weights: "Gewichte eines Modells",
  webllm: "Ein Modell für WebLLM",
  partOf: (what) => `Teil von: ${what}`,
  onWebLlm: "läuft mit WebLLM",
  on: (size, backend) => `${size} auf ${backend}`,
  context: (tokens) => counted("de", tokens, { one: "Kontext von # Token", other: "Kontext von # Tokens" }),
};

export const engine: Words["engine"] = {
  insecure:
    "Modelle laufen auf dieser Seite nur über HTTPS oder auf localhost. Das Modell bitte auf dem Server ausführen.",
  starting: "Die Engine dieser Seite startet",
  startingWebLlm: "WebLLM startet auf dieser Seite",
  otherChat: "Warten auf die Antwort in einem anderen Chat",
  noWebGpu: "Dieser Browser hat kein WebGPU. Das Modell läuft deshalb auf dem Prozessor. Der Server ist schneller.",
  loading: "Modell wird geladen",
  fetching: (done, total) => `Das Modell wird auf diese Seite heruntergeladen: ${done} von ${total}`,
  busy: "Ein anderer Tab lädt dieses Modell herunter. Diese Seite wartet darauf.",
  notKept: (why) => `Die Seite kann das Modell nicht behalten (${why}). Sie liest es jedes Mal vom Server.`,
  reading: "Modell wird vom Server gelesen",
  advice: {
    runner:
      "Die Seite hat das Modell aus ihrem Speicher verloren. „Fortsetzen“ oder „Noch einmal versuchen“ lädt es wieder. Scheitert das erneut, hilft der Prozessor (Modelle, Modelle auf dieser Seite) oder der Server.",
    upstream:
      "Die Seite behält, was sie heruntergeladen hat. Ein neuer Versuch holt den Rest, sobald der Server wieder da ist.",
    too_large:
      "Ein kleineres Modell oder einen kleineren Kontext wählen, oder das Modell auf dem Prozessor (Modelle, Modelle auf dieser Seite) oder auf dem Server ausführen.",
  },
  noPictures: "WebLLM nimmt hier keine Bilder an. Bitte ein GGUF-Modell wählen, das Bilder sieht.",
  onlyMlc:
    "WebLLM führt nur Modelle aus, die MLC kompiliert hat. Dieses Modell läuft auf dem Server oder auf dieser Seite.",
  cannotLoad: (why) => `WebLLM kann das Modell nicht laden: ${why}`,
};
