/** French: the models of the server, and of this page. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";
import { descriptions } from "./catalogue.ts";

export const models: Words["models"] = {
  pullLabel: "Nom du modèle à télécharger",
  pullHint: "Télécharger un modèle\u00a0: llama3.2:1b, hf.co/owner/model-GGUF:Q4_K_M",
  pull: "Télécharger",
  list: "Modèles sur le serveur",
  none: "Il n’y a pas encore de modèle. Téléchargez-en un par son nom, par exemple llama3.2:1b.",
  chat: "Discuter",
  more: (model) => `Plus d’actions pour ${model}`,
  show: "Détails",
  load: "Charger maintenant",
  unload: "Décharger",
  update: "Mettre à jour",
  createFrom: "Créer un modèle à partir de celui-ci",
  copyTitle: (model) => `Copier ${model}`,
  copyName: "Nom de la copie",
  deleted: (model, size) => `${model} supprimé (${size}).`,
  embeds: "produit des embeddings",
  inMemory: (size) => `En mémoire\u00a0: ${size}`,
  onCpu: "sur le CPU",
  onGpu: (percent) => `${percent}\u00a0% sur le GPU`,
  context: (tokens) => `contexte de ${tokens} tokens`,
  leaves: (when) => `déchargement ${when}`,
  stays: "reste chargé",
};

export const catalogue: Words["catalogue"] = {
  title: "Catalogue",
  describe: (name, english) => descriptions[name] ?? english,
  purpose: "Usage",
  all: "Tous",
  purposes: { chat: "Discussion", reasoning: "Raisonnement", code: "Code", vision: "Images", embedding: "Embeddings" },
  installed: "installé",
  chatWith: (model) => `Discuter avec ${model}`,
  download: (model) => `Télécharger ${model}`,
  pausing: (model) => `Suspendre le téléchargement de ${model}`,
  fits: (free) => `Convient\u00a0: ${free} de mémoire disponibles.`,
  tight: (reason) => `Juste\u00a0: ${reason}.`,
  tooLarge: (reason) => `Trop grand\u00a0: ${reason}.`,
  updated: (month) => `État\u00a0: ${month}. Tailles approximatives. Autres modèles\u00a0: par leur nom, ci-dessus.`,
  suggested: "Modèles suggérés",
};

export const jobs: Words["jobs"] = {
  title: "Téléchargements",
  pause: "Suspendre",
  resume: "Reprendre",
  forget: "Retirer",
  forgot: (model) => `Téléchargement de ${model} retiré.`,
  withoutTls: "Télécharger sans TLS",
  progress: (model) => `Progression de ${model}`,
  paused: "Suspendu. Le serveur conserve la partie téléchargée pendant une semaine.",
  stopped: "Arrêté.",
  checking: "Vérification du fichier",
  uploading: "Envoi en cours",
  waiting: "En attente",
  downloading: "Téléchargement en cours",
  downloaded: "Téléchargé.",
  created: "Créé.",
  amount: (done, total) => `${done} sur ${total}`,
  rate: (size) => `${size}/s`,
  left: (time) => `reste ${time}`,
};

export const modelFiles: Words["modelFiles"] = {
  title: "Ajouter un modèle à partir de fichiers",
  add: "Ajouter des fichiers",
  choose: "Fichiers du modèle",
  action: "Ajouter",
  replaces: (model) => `Le modèle ${model} existe déjà. Il sera remplacé.`,
  imagePart: "pour les images",
  busy: (model) => `${model} est déjà en cours de téléchargement ou de création.`,
  empty: (file) => `${file} est vide.`,
  notGguf: (file) => `${file} n’est pas un fichier GGUF. Il a été renommé, ou son téléchargement est incomplet.`,
  unreadable: (file) => `Le navigateur ne peut pas lire ${file}. Le fichier a été déplacé ou modifié.`,
  missing: (count, files) =>
    `${counted("fr", count, { one: "Il manque une partie du modèle\u00a0:", other: "Il manque # parties du modèle\u00a0:" })} ${files}. Choisissez toutes les parties ensemble.`,
  several: "Ces fichiers forment plusieurs modèles. Ajoutez un modèle à la fois.",
  onlyImages: "Ce fichier n’est que la partie d’un modèle qui lit les images. Ajoutez-y le fichier GGUF du modèle.",
  drop: "Déposez des fichiers pour les joindre. Les fichiers GGUF deviennent un modèle.",
};

export const create: Words["create"] = {
  title: "Créer un modèle",
  modelfile: "Modelfile",
  quantize: "Quantifier",
  asIs: "Non",
};

export const show: Words["show"] = {
  reading: "Lecture du modèle",
  parameters: "Paramètres",
  template: "Modèle de prompt",
  license: "Licence",
  copy: (part) => `Copier\u00a0: ${part}`,
  facts: {
    architecture: "Architecture",
    parameter_size: "Paramètres",
    quantization_level: "Quantification",
    context_length: "Contexte, tokens",
    embedding_length: "Taille des embeddings",
    block_count: "Blocs",
    "attention.head_count": "Têtes d’attention",
    vocab_size: "Vocabulaire",
    expert_count: "Experts",
  },
};

export const inPage: Words["inPage"] = {
  title: "Modèles dans cette page",
  insecure: "Les modèles ne s’exécutent dans cette page qu’en HTTPS ou sur localhost.",
  about:
    "Une discussion peut exécuter son modèle dans cette page plutôt que sur le serveur. La page télécharge le modèle une seule fois et le conserve dans ce navigateur. Les modèles compilés par MLC ne s’exécutent qu’ici, avec WebLLM, qui a besoin de WebGPU.",
  runsOn: "Exécuter sur",
  backends: {
    auto: "le plus rapide disponible",
    webgpu: "la carte graphique (WebGPU)",
    wasm: "le processeur (WebAssembly)",
    cpu: "l’implémentation de référence (lente)",
  },
  look: "Afficher les modèles en cache",
  nothing: "Aucun modèle en cache.",
  used: (usage, quota) => `${usage} utilisés sur ${quota}`,
  weights: "Poids d’un modèle",
  webllm: "Un modèle pour WebLLM",
  partOf: (what) => `Partie de\u00a0: ${what}`,
  onWebLlm: "s’exécute avec WebLLM",
  on: (size, backend) => `${size} sur ${backend}`,
  context: (tokens) =>
    counted("fr", tokens, {
      one: "contexte de # token",
      many: "contexte de # de tokens",
      other: "contexte de # tokens",
    }),
};

export const engine: Words["engine"] = {
  insecure:
    "Les modèles ne s’exécutent dans cette page qu’en HTTPS ou sur localhost. Exécutez plutôt le modèle sur le serveur.",
  starting: "Démarrage du moteur dans cette page",
  startingWebLlm: "Démarrage de WebLLM dans cette page",
  otherChat: "En attente de la réponse à une autre discussion",
  noWebGpu:
    "Ce navigateur ne dispose pas de WebGPU\u202f; le modèle s’exécute donc sur le processeur. Le serveur est plus rapide.",
  loading: "Chargement du modèle",
  fetching: (done, total) => `Téléchargement du modèle dans cette page\u00a0: ${done} sur ${total}`,
  busy: "Un autre onglet télécharge ce modèle. En attente.",
  notKept: (why) => `La page ne peut pas conserver le modèle (${why}). Elle le lit chaque fois depuis le serveur.`,
  reading: "Lecture du modèle depuis le serveur",
  advice: {
    runner:
      "La page a perdu le modèle de sa mémoire. Continuez ou réessayez pour le recharger. Si cela échoue encore, exécutez-le sur le processeur (Modèles, Modèles dans cette page) ou sur le serveur.",
    upstream:
      "La page conserve ce qu’elle a téléchargé. Réessayez quand le serveur sera de retour\u00a0: le reste suivra.",
    too_large:
      "Choisissez un modèle ou un contexte plus petit, ou exécutez-le sur le processeur (Modèles, Modèles dans cette page) ou sur le serveur.",
  },
  noPictures: "WebLLM n’accepte pas d’images ici. Choisissez un modèle GGUF qui voit les images.",
  onlyMlc: "WebLLM n’exécute que les modèles compilés par MLC. Exécutez ce modèle sur le serveur ou dans cette page.",
  cannotLoad: (why) => `WebLLM ne peut pas charger le modèle\u00a0: ${why}`,
};
