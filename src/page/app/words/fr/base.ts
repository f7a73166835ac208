/** French: the frame of the page, and what every view uses. */
import type { Words } from "../en.ts";

export const base: Words["base"] = {
  skip: "Aller au contenu",
  chatsAndViews: "Discussions et vues",
  newChat: "Nouvelle discussion",
  search: "Rechercher",
  models: "Modèles",
  gateway: "Passerelle",
  system: "Système",
  serverGone:
    "Le serveur est injoignable. Cette page continue d’essayer de s’y connecter. Vos discussions sont en sécurité dans ce navigateur.",
  notKept: (why) =>
    `Les discussions seront perdues à la fermeture de cet onglet, car le navigateur ne les enregistre pas\u00a0: ${why}`,
  unreachable: "Le serveur est injoignable. Réessayez quand il sera de retour.",
  undo: "Annuler",
  close: "Fermer",
  cancel: "Annuler",
  save: "Enregistrer",
  delete: "Supprimer",
  create: "Créer",
  name: "Nom",
  noMatches: "Aucun résultat.",
  themes: { auto: "automatiques", light: "claires", dark: "sombres" },
  theme: (now) => `Couleurs\u00a0: ${now}`,
  changeTheme: (now, next) => `Couleurs\u00a0: ${now}. Passer aux couleurs ${next}.`,
};
