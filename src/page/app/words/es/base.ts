/** Spanish: the frame of the page, and what every view uses. */
import type { Words } from "../en.ts";

export const base: Words["base"] = {
  skip: "Ir al contenido",
  chatsAndViews: "Chats y vistas",
  newChat: "Nuevo chat",
  search: "Buscar",
  models: "Modelos",
  gateway: "Pasarela",
  system: "Sistema",
  serverGone:
    "No se puede acceder al servidor. Esta página sigue intentando conectarse. Tus chats están a salvo en este navegador.",
  notKept: (why) => `Los chats se perderán al cerrar esta pestaña porque el navegador no puede guardarlos: ${why}`,
  unreachable: "No se puede acceder al servidor. Inténtalo de nuevo cuando vuelva a estar disponible.",
  undo: "Deshacer",
  close: "Cerrar",
  cancel: "Cancelar",
  save: "Guardar",
  delete: "Eliminar",
  create: "Crear",
  name: "Nombre",
  noMatches: "Sin resultados.",
  themes: { auto: "automáticos", light: "claros", dark: "oscuros" },
  theme: (now) => `Colores: ${now}`,
  changeTheme: (now, next) => `Colores: ${now}. Cambiar a ${next}.`,
};
