/** French: the gateway, the system, and the dialogs of the page. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";

export const gateway: Words["gateway"] = {
  parts: "Parties de la passerelle",
  deliveries: "Livraisons",
  mappings: "Correspondances",
  approvals: "Approbations",
  findings: "Constats",
  paused: "Suspendue",
  waiting: "En attente",
  running: "En cours",
  replies: "Réponses à envoyer",
  messages: "Messages à envoyer",
  off: {
    title: "Laisser d’autres systèmes réveiller un modèle",
    text: "Un ticket GitHub devient un résumé dans Slack. Un build en échec devient une explication. La passerelle reçoit des webhooks, exécute un modèle et envoie sa réponse dans une messagerie.",
    how: "La passerelle est désactivée. Ajoutez ceci à hearth.json5, définissez les trois variables et redémarrez le serveur\u00a0:",
    copy: "Copier la configuration",
    locked:
      "La passerelle fonctionne, mais cette vue est verrouillée car aucun jeton n’est défini. Ajoutez gateway.token à hearth.json5 et redémarrez le serveur.",
    docs: "Le fichier docs/webhooks.md de Hearth explique chaque paramètre.",
  },
  token: "Jeton de la passerelle",
  tokenHint: "Saisissez le gateway.token de hearth.json5. Cet onglet le conserve jusqu’à sa fermeture.",
  tokenRefused: "Ce jeton est incorrect. Saisissez le gateway.token de hearth.json5.",
  open: "Ouvrir",
};

export const pageSettings: Words["pageSettings"] = {
  title: "Cette page",
  language: "Langue",
  browserLanguage: "Langue du navigateur",
  titles: "Laisser le modèle rédiger les titres des discussions",
  titlesHint:
    "Après la première réponse, quand aucune autre réponse n’est en cours. Les modèles de moins d’un milliard de paramètres ne sont pas sollicités.",
};

export const approvals: Words["approvals"] = {
  none: "Aucun appel n’attend d’approbation.",
  allow: "Autoriser une fois",
  refuse: "Refuser",
  until: (time) => `attend jusqu’au ${time}`,
  allowed: (tool) => `L’appel de ${tool} est autorisé.`,
  refused: (tool) => `L’appel de ${tool} est refusé.`,
};

export const deliveries: Words["deliveries"] = {
  state: "État",
  any: "Tous",
  path: "Chemin",
  anyPath: "tous",
  none: "Aucune livraison pour le moment.",
  earlier: "Afficher les livraisons précédentes",
  replayed: "rejouée",
  title: "Livraison",
  replay: "Rejouer",
  replayDead: "Tout rejouer",
  replayReplies: "Renvoyer toutes les réponses",
  deadCount: (count) =>
    counted("fr", count, {
      one: "# exécution a été abandonnée. Elle sera rejouée.",
      other: "# exécutions ont été abandonnées. Elles seront rejouées, les plus anciennes d’abord.",
    }),
  lostCount: (count) =>
    counted("fr", count, {
      one: "# réponse a échoué. Elle sera renvoyée sans interroger le modèle.",
      other: "# réponses ont échoué. Elles seront renvoyées sans interroger le modèle.",
    }),
  replaysLeft: (count) => `Reste à faire : ${count}`,
  replayedAll: (done, skipped) => `Rejouées : ${done}${skipped > 0 ? `, ignorées : ${skipped}` : ""}`,
  headers: "En-têtes",
  body: "Corps",
  bodyBase64: "Corps, en base64",
  noBody: "Le corps n’a pas été conservé, car hooks.queue.keepBodies est désactivé.",
  received: "Reçue",
  about: "Objet",
  mapping: "Correspondance",
  noMapping: "aucune",
  sender: "Expéditeur",
  request: "Requête",
  wake: "Réveil",
  turn: "Tour d’agent",
  reply: (state) => `réponse\u00a0: ${state}`,
  fate: ({ state, lost }) => (lost === undefined ? state : `${state}, réponse\u00a0: ${lost}`),
  prompt: "Prompt",
};

export const setup: Words["setup"] = {
  noMappings: "Il n’y a aucune correspondance. Seuls /wake et /agent reçoivent des webhooks.",
  tryIt: "Essayer",
  everyPath: "tous les chemins",
  repliesTo: (channel) => `répond à ${channel}`,
  preset: (name) => `préréglage ${name}`,
  tryTitle: (mapping) => `Essayer ${mapping}`,
  tryAbout: "Montre ce que la correspondance fait d’un contenu. Rien n’est enregistré ni envoyé.",
  payload: "Contenu, en JSON",
  headers: "En-têtes, un par ligne, par exemple X-GitHub-Event: issues",
  notHeader: (line) => `«\u00a0${line}\u00a0» n’est pas un en-tête. Attendu\u00a0: NAME: VALUE`,
  notJson: "Le contenu n’est pas du JSON valide.",
  try: "Essayer",
  noFindings: "L’audit n’a trouvé aucun problème.",
};

export const system: Words["system"] = {
  metrics: "Métriques",
  machine: "Cette machine",
  facts: {
    version: "Version",
    backend: "Moteur",
    device: "Périphérique",
    memory: "Mémoire",
    disk: "Disque",
    running: "Réponses en cours",
    waiting: "Requêtes en attente",
    load: "Modèles chargés depuis le démarrage",
    crash: "Plantages depuis le démarrage",
  },
  memory: (free, total) => `${free} libres sur ${total}`,
  free: (size) => `${size} libres`,
  settings: "Paramètres du serveur",
  settingsFrom:
    "Définis dans hearth.json5, par des variables d’environnement ou en ligne de commande. Le serveur les lit à son démarrage.",
  names: {
    host: "Adresse",
    backend: "Moteur",
    num_parallel: "Réponses simultanées par modèle",
    max_loaded_models: "Modèles en mémoire",
    max_queue: "Requêtes pouvant attendre",
    keep_alive: "Durée des modèles en mémoire",
    context_length: "Contexte, tokens",
    gpu_memory: "Mémoire GPU",
    api_keys: "Clés d’API",
    debug: "Journal de débogage",
  },
  auto: "automatique",
  forever: "sans limite",
  on: "activé",
  off: "désactivé",
  none: "aucune",
  key: "Cet onglet a une clé d’API",
  forgetKey: "Oublier la clé",
  forgotKey: "La clé d’API de cet onglet a été oubliée.",
  requests: "Dernières requêtes",
  requestTable: "Tableau des dernières requêtes",
  noRequests: "Aucune requête pour le moment, hormis celles de cette page.",
  columns: {
    time: "Heure",
    request: "Requête",
    status: "Statut",
    took: "Durée",
    model: "Modèle",
    tokens: "Tokens",
    key: "Clé",
  },
};

export const keyDialog: Words["keyDialog"] = {
  title: "Ce serveur demande une clé d’API",
  refused: "La clé est incorrecte. Demandez une clé valide à l’administrateur de ce serveur.",
  about:
    "L’administrateur de ce serveur a défini des clés d’API (HEARTH_API_KEYS). Cet onglet conserve votre clé jusqu’à sa fermeture.",
  key: "Clé d’API",
  enter: "Saisir la clé",
  use: "Utiliser cette clé",
};

export const keyboard: Words["keyboard"] = {
  title: "Clavier",
  mac: "Sur un Mac, utilisez ⌘ à la place de Ctrl.",
  newChat: "Nouvelle discussion",
  search: "Rechercher dans les discussions",
  write: "Écrire un message",
  send: "Envoyer",
  newLine: "Nouvelle ligne",
  stop: "Arrêter la réponse, ou fermer ce qui est ouvert",
  editLast: "Modifier votre dernier message, si rien n’est encore écrit",
  settings: "Paramètres de cette discussion",
  undo: "Annuler une suppression, pendant 10 secondes",
  list: "Cette liste",
};

export const help: Words["help"] = {
  title: "Aide",
  topics: [
    {
      title: "Obtenir un modèle",
      text: "Ouvrez Modèles et saisissez un nom, par exemple llama3.2:1b. Si vous fermez la page, le téléchargement s’interrompt\u202f; vous pourrez le reprendre plus tard.",
    },
    {
      title: "Discuter",
      text: "Joignez des fichiers avec le trombone, ou par glisser-déposer ou collage. Modifiez un message pour en créer une nouvelle version\u202f; l’ancienne est conservée. Les paramètres en haut à droite changent le prompt système et l’échantillonnage.",
    },
    {
      title: "Vos données",
      text: "Les discussions restent dans ce navigateur. Exportez-les depuis le menu à côté de Discussions avant d’effacer ses données.",
    },
    {
      title: "Autres programmes",
      text: "Hearth parle les API d’Ollama, d’OpenAI et d’Anthropic. Indiquez à un client l’adresse de cette page.",
    },
    {
      title: "Ligne de commande",
      text: "hearth -h affiche toutes les commandes. Le dossier docs de Hearth explique chaque paramètre.",
    },
  ],
  api: "Référence de l’API",
};

export const markdown: Words["markdown"] = {
  copied: "Copié",
  copyCode: "Copier le code",
  code: "Code",
  codeIn: (language) => `Code en ${language}`,
  table: "Tableau",
};
