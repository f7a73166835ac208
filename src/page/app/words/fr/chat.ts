/** French: chats. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";

export const chats: Words["chats"] = {
  heading: "Discussions",
  none: "Vos discussions sont enregistrées uniquement dans ce navigateur.",
  more: (title) => `Plus d’actions pour ${title}`,
  rename: "Renommer",
  export: "Exporter",
  exportMarkdown: "Exporter en Markdown",
  name: "Nom de la discussion",
  transfer: "Dossiers, importation et exportation",
  import: "Importer des discussions",
  exportAll: "Exporter toutes les discussions",
  files: "Fichiers de discussions",
  imported: (count) =>
    counted("fr", count, {
      one: "# discussion importée.",
      many: "# de discussions importées.",
      other: "# discussions importées.",
    }),
  notChats: (file) =>
    `${file} ne contient aucune discussion de Hearth. Choisissez un fichier créé par «\u00a0Exporter\u00a0».`,
  deleted: (title, messages) => {
    const count = counted("fr", messages, { one: "# message", many: "# de messages", other: "# messages" });
    return `«\u00a0${title}\u00a0» supprimée avec ${count}.`;
  },
  notHere:
    "Cette discussion n’est pas dans ce navigateur. Elle a été supprimée, ou commencée dans un autre navigateur.",
  days: { today: "Aujourd’hui", yesterday: "Hier", week: "7 derniers jours", month: "30 derniers jours" },
  pinned: "Épinglées",
  pin: "Épingler en haut",
  unpin: "Désépingler",
  move: "Déplacer vers un dossier",
  moveTitle: (title) => `Déplacer «\u00a0${title}\u00a0»`,
  noFolder: "Aucun dossier",
  newFolder: "Nouveau dossier",
  folderName: "Nom du dossier",
  moreFolder: (name) => `Plus d’actions pour le dossier ${name}`,
  deleteFolder: "Supprimer le dossier, garder ses discussions",
  deletedFolder: (name) => `Dossier «\u00a0${name}\u00a0» supprimé. Ses discussions sont conservées.`,
  search: "Rechercher dans les discussions",
  results: "Résultats de la recherche",
};

export const chat: Words["chat"] = {
  pictureTitle: "Image",
  you: "Vous",
  answer: "Réponse",
  tool: "Outil",
  beingWritten: (who) => `${who}, en cours d’écriture`,
  messages: "Messages",
  toEnd: "Aller à la fin",
  answering: "Le modèle répond",
  anotherTab: "Un autre onglet écrit cette réponse.",
  waiting: "En attente du modèle",
  writing: "Écriture",
  thinking: "Réflexion",
  thoughts: "Raisonnement",
  rate: (tokens) => `${tokens} tokens/s`,
  tokens: (count) => counted("fr", count, { one: "# token", many: "# de tokens", other: "# tokens" }),
  wasCut: "les messages les plus anciens ne tenaient pas et ont été écartés",
  inPage: "dans cette page",
  inWebLlm: "dans cette page, avec WebLLM",
  stopped: "Arrêtée.",
  limit: "La réponse a atteint sa longueur maximale.",
  goOn: "Continuer",
  goOnWith: "Continuer cette réponse",
  tryAgain: "Réessayer",
  getAnswer: "Obtenir une réponse",
  copy: "Copier",
  copyMarkdown: "Copier en Markdown",
  copied: "Message copié en Markdown.",
  systemPrompt: "Prompt système",
  attachedNames: (names) => `Pièces jointes\u00a0: ${names}`,
  pictures: (count) => counted("fr", count, { one: "# image", many: "# d’images", other: "# images" }),
  edit: "Modifier",
  readAloud: "Lire à voix haute",
  stopReading: "Arrêter la lecture",
  again: "Répondre à nouveau",
  againWith: (model) => `Répondre à nouveau avec ${model}`,
  more: "Plus",
  deleteFrom: (count) =>
    counted("fr", count, {
      one: "Supprimer ce message",
      many: "Supprimer # de messages à partir d’ici",
      other: "Supprimer # messages à partir d’ici",
    }),
  deleted: (count) =>
    counted("fr", count, {
      one: "# message supprimé.",
      many: "# de messages supprimés.",
      other: "# messages supprimés.",
    }),
  version: (at, all) => `Version ${at} sur ${all}`,
  versionBefore: "Version précédente",
  versionAfter: "Version suivante",
  attached: "Image jointe",
  calls: (name) => `Appelle ${name}`,
  result: (name) => `Résultat de ${name}`,
  giveResults: "Envoyer les résultats",
  yourMessage: "Votre message",
  theAnswer: "La réponse",
  changed: "Message modifié.",
  discarded: "Modifications abandonnées.",
  askAgain: "Envoyer comme nouvelle version",
  busy: "Le modèle répond encore. Attendez la fin, ou arrêtez la réponse.",
  elsewhere: "Un autre onglet répond dans cette discussion. Attendez la fin, ou arrêtez la réponse là-bas.",
  notSaved: (why) => `Impossible d’enregistrer cette discussion\u00a0: ${why}`,
  noRoom: "le navigateur n’a plus de place pour cette page. Exportez et supprimez quelques discussions.",
  interrupted: "La page a été fermée avant la fin de cette réponse.",
  noEnd: "La réponse s’est terminée sans raison.",
  lost: "Le serveur est injoignable. Ce qui est arrivé est enregistré\u00a0: continuez quand le serveur sera de retour.",
  unreachable:
    "Le serveur est injoignable. Votre message est enregistré\u00a0: réessayez quand le serveur sera de retour.",
};

export const toolCalls: Words["toolCalls"] = {
  asks: (tool) => `Le modèle veut appeler ${tool}.`,
  wasBegun: "Un essai précédent a été interrompu. Il a peut-être déjà eu son effet.",
  decisions: {
    once: "Autoriser une fois",
    always: "Toujours dans cette discussion",
    no: "Refuser",
    never: "Jamais dans cette discussion",
  },
  underWay: (tool) => `Appel de ${tool}`,
  stop: "Arrêter cet appel",
  failed: "échec",
  result: "Résultat",
  noOutput: "(aucune sortie)",
  shortened: "Seul le début est affiché. Le modèle reçoit le résultat entier.",
};

export const toolServers: Words["toolServers"] = {
  title: "Serveurs d’outils",
  hint: "Le modèle peut appeler les outils des serveurs activés. La page vous demande avant chaque appel, sauf si la configuration indique que l’outil est sans danger.",
  tools: (count) => counted("fr", count, { one: "# outil", other: "# outils" }),
  always: (tools) => `Appelés sans demander\u00a0: ${tools}.`,
  never: (tools) => `Jamais appelés\u00a0: ${tools}.`,
  askAgain: "Demander à nouveau",
  missing: (server, why) => `Les outils de ${server} manquent\u00a0: ${why || "il n’est pas configuré."}`,
};

export const compare: Words["compare"] = {
  title: "Réponses côte à côte",
  hint: (model, others) =>
    `Choisissez jusqu’à ${counted("fr", others, { one: "# modèle qui répondra", other: "# modèles qui répondront" })} aussi à chaque question. ${model} est le modèle de cette discussion.`,
  also: (models) => `Répond aussi\u00a0: ${models}`,
  off: "Désactiver",
  goOn: "Continuer avec cette réponse",
  goOnWith: (model) => `Continuer avec cette réponse de ${model}`,
};

export const prompts: Words["prompts"] = {
  title: "Prompts enregistrés",
  manage: "Modifier les prompts enregistrés",
  kinds: {
    message: {
      heading: "Prompts",
      hint: "Écrivez / et le nom d’un prompt dans le champ de message pour insérer son texte.",
      add: "Nouveau prompt",
    },
    system: {
      heading: "Prompts système enregistrés",
      hint: "Une nouvelle discussion peut commencer par l’un d’eux.",
      add: "Nouveau prompt système",
    },
  },
  text: "Texte",
  saveSystem: "Enregistrer ce prompt système",
  choose: "Choisir un prompt système enregistré",
  edit: (name) => `Modifier ${name}`,
  delete: (name) => `Supprimer ${name}`,
  deleted: (name) => `Prompt «\u00a0${name}\u00a0» supprimé.`,
};

export const composer: Words["composer"] = {
  message: "Message",
  placeholder: "Écrire un message",
  send: "Envoyer",
  stop: "Arrêter",
  attach: "Joindre des fichiers",
  files: "Fichiers",
  attachments: "Pièces jointes",
  remove: (name) => `Retirer ${name}`,
  picture: "image",
  removed: (name) => `Pièce jointe retirée\u00a0: ${name}.`,
  context: "Contexte utilisé",
  contextHint: (tokens) => `Cette discussion utilise environ ${tokens} tokens du contexte du modèle.`,
  contextOf: (used, size) => `${used} sur ${size} tokens`,
  contextUsed: (used) => `${used} tokens`,
  cannotSee: (model) => `${model} ne peut pas voir les images.`,
  cannotChat: (model) => `${model} ne peut pas discuter\u00a0: il produit des embeddings.`,
  gone: (model) => `${model} n’est plus sur le serveur.`,
  use: (model) => `Utiliser ${model}`,
  getSeeing: "Obtenir un modèle qui voit les images",
  getModel: "Obtenir un modèle",
  removePictures: "Retirer les images",
};

export const attachments: Words["attachments"] = {
  textTooLarge: (file, limit) => `${file} est trop volumineux. Un fichier texte peut faire jusqu’à ${limit}.`,
  pictureTooLarge: (file, limit) => `${file} est trop volumineux. Une image peut faire jusqu’à ${limit}.`,
  unknown: (file) => `${file} n’est ni une image ni un fichier texte.`,
  documentTooLarge: (file, limit) => `${file} est trop volumineux. Un document peut avoir jusqu’à ${limit}.`,
  tookTooLong: (file) => `La lecture de ${file} a pris plus d’une minute. Joignez-en une partie.`,
  faults: {
    protected: (file) =>
      `${file} a un mot de passe ou vient d’un ancien Office. Enregistrez-le de nouveau, sans mot de passe.`,
    noText: (file) => `${file} ne contient pas de texte. S’il est numérisé, joignez ses pages en images.`,
    damaged: (file) => `${file} est endommagé et ne peut pas être lu.`,
    unpacked: (file) => `${file} est trop volumineux une fois décompressé.`,
    unknown: (file) => `${file} n’est ni une image, ni un texte, ni un document que cette page sait lire.`,
  },
  reading: (file) => `Lecture de ${file}`,
  readingPage: (file, page) => `Lecture de ${file}, page ${page}`,
  stopReading: (file) => `Arrêter la lecture de ${file}`,
  parts: {
    pages: (count) => counted("fr", count, { one: "# page", many: "# de pages", other: "# pages" }),
    slides: (count) =>
      counted("fr", count, { one: "# diapositive", many: "# de diapositives", other: "# diapositives" }),
    sheets: (count) => counted("fr", count, { one: "# feuille", many: "# de feuilles", other: "# feuilles" }),
  },
  about: (tokens) => `environ ${tokens}`,
  firstPart: "première partie",
  tooLong: (tokens, model, context) =>
    `Les fichiers prennent ${tokens} tokens. Le contexte de ${model} en a ${context}.`,
  useFirst: "Utiliser la première partie",
  shortened: (file) => `${file} a été raccourci.`,
  unreadable: (file) => `Ce navigateur ne peut pas lire l’image ${file}.`,
};

export const welcome: Words["welcome"] = {
  title: "Qu’avez-vous en tête\u202f?",
  private: "Les modèles tournent sur votre propre machine. Les discussions restent dans ce navigateur.",
  prompts: [
    { label: "Raconter une histoire", text: "Raconte-moi une courte histoire sur un gardien de phare." },
    { label: "Expliquer un fichier", text: "Explique ce fichier.", wantsFile: true },
    { label: "Écrire du JSON", text: "Écris un objet JSON qui décrit un livre. Réponds uniquement en JSON." },
  ],
  demo: (size) => `Ceci est un modèle de démonstration de ${size}.`,
  getUseful: "En obtenir un qui soit utile →",
  noModel: "Ce serveur n’a aucun modèle capable de discuter.",
  getOne: "En obtenir un →",
};

export const modelMenu: Words["modelMenu"] = {
  button: (model) => `Modèle\u00a0: ${model}`,
  title: "Choisir un modèle",
  none: "Aucun modèle",
  gone: "supprimé",
  search: "Rechercher des modèles",
  more: "Obtenir d’autres modèles…",
  loaded: "en mémoire",
  sees: "peut voir les images",
  calls: "peut appeler des outils",
  thinks: "peut réfléchir d’abord",
  where: (place) => `S’exécute ${place}`,
  places: { server: "sur le serveur", page: "dans cette page", webllm: "dans cette page, avec WebLLM" },
  whyNot: {
    server: "Ce modèle ne s’exécute qu’avec WebLLM.",
    page: "Le format de ce modèle ne s’exécute pas dans une page.",
    webllm: "Seuls les modèles compilés par MLC s’exécutent avec WebLLM.",
  },
};

export const options: Words["options"] = {
  title: "Paramètres de cette discussion",
  systemHint: "Instructions pour le modèle, avant le premier message",
  think: "Réflexion",
  thinking: { auto: "Selon le modèle", on: "Activée", off: "Désactivée" },
  names: {
    temperature: "Température",
    top_p: "Top p",
    top_k: "Top k",
    min_p: "Min p",
    repeat_penalty: "Pénalité de répétition",
    seed: "Graine",
    num_predict: "Longueur maximale, tokens",
    num_ctx: "Contexte, tokens",
  },
  notInside: (min, max, isDecimal) =>
    `Non utilisé. Un nombre ${isDecimal ? "" : "entier "}de ${min} à ${max} est attendu.`,
  modelsOwn: "par défaut",
  tools: "Outils, en JSON",
  notTools: 'Ce n’est pas une liste d’outils. Attendu\u00a0: du JSON tel que [{"type": "function", …}].',
};
