/** Spanish: the gateway, the system, and the dialogs of the page. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";

export const gateway: Words["gateway"] = {
  parts: "Partes de la pasarela",
  deliveries: "Entregas",
  mappings: "Asignaciones",
  approvals: "Aprobaciones",
  findings: "Hallazgos",
  paused: "En pausa",
  waiting: "En espera",
  running: "En curso",
  replies: "Respuestas por enviar",
  messages: "Mensajes por enviar",
  off: {
    title: "Deja que otros sistemas despierten a un modelo",
    text: "Una incidencia de GitHub se convierte en un resumen en Slack. Una compilación fallida, en una explicación. La pasarela recibe webhooks, ejecuta un modelo y envía su respuesta a un chat.",
    how: "La pasarela está desactivada. Añade esto a hearth.json5, define las tres variables y reinicia el servidor:",
    copy: "Copiar la configuración",
    locked:
      "La pasarela está en marcha, pero esta vista está bloqueada porque no hay ningún token definido. Añade gateway.token a hearth.json5 y reinicia el servidor.",
    docs: "El archivo docs/webhooks.md de Hearth explica cada ajuste.",
  },
  token: "Token de la pasarela",
  tokenHint: "Introduce el gateway.token de hearth.json5. Esta pestaña lo guarda hasta que la cierres.",
  tokenRefused: "Este token no es correcto. Introduce el gateway.token de hearth.json5.",
  open: "Abrir",
};

export const pageSettings: Words["pageSettings"] = {
  title: "Esta página",
  language: "Idioma",
  browserLanguage: "Idioma del navegador",
  titles: "Dejar que el modelo escriba los títulos de los chats",
  titlesHint:
    "Después de la primera respuesta, cuando no hay otra en curso. No se recurre a modelos de menos de mil millones de parámetros.",
};

export const approvals: Words["approvals"] = {
  none: "Ninguna llamada espera una aprobación.",
  allow: "Permitir una vez",
  refuse: "Rechazar",
  until: (time) => `espera hasta ${time}`,
  allowed: (tool) => `Se permitió la llamada a ${tool}.`,
  refused: (tool) => `Se rechazó la llamada a ${tool}.`,
};

export const deliveries: Words["deliveries"] = {
  state: "Estado",
  any: "Todos",
  path: "Ruta",
  anyPath: "todas",
  none: "Todavía no hay entregas.",
  earlier: "Mostrar entregas anteriores",
  replayed: "repetición",
  title: "Entrega",
  replay: "Repetir",
  replayDead: "Repetir todas",
  replayReplies: "Reenviar todas las respuestas",
  deadCount: (count) =>
    counted("es", count, {
      one: "Se abandonó # ejecución. Se ejecutará de nuevo.",
      other: "Se abandonaron # ejecuciones. Se ejecutarán de nuevo, primero las más antiguas.",
    }),
  lostCount: (count) =>
    counted("es", count, {
      one: "Falló # respuesta. Se enviará de nuevo sin consultar al modelo.",
      other: "Fallaron # respuestas. Se enviarán de nuevo sin consultar al modelo.",
    }),
  replaysLeft: (count) => `Pendientes: ${count}`,
  replayedAll: (done, skipped) => `Repetidas: ${done}${skipped > 0 ? `, omitidas: ${skipped}` : ""}`,
  headers: "Encabezados",
  body: "Cuerpo",
  bodyBase64: "Cuerpo, en base64",
  noBody: "El cuerpo no se conservó porque hooks.queue.keepBodies está desactivado.",
  received: "Recibida",
  about: "Asunto",
  mapping: "Asignación",
  noMapping: "ninguna",
  sender: "Remitente",
  request: "Solicitud",
  wake: "Despertar",
  turn: "Turno de agente",
  reply: (state) => `respuesta: ${state}`,
  fate: ({ state, lost }) => (lost === undefined ? state : `${state}, respuesta: ${lost}`),
  prompt: "Prompt",
};

export const setup: Words["setup"] = {
  noMappings: "No hay asignaciones. Solo /wake y /agent reciben webhooks.",
  tryIt: "Probar",
  everyPath: "todas las rutas",
  repliesTo: (channel) => `responde a ${channel}`,
  preset: (name) => `preajuste ${name}`,
  tryTitle: (mapping) => `Probar ${mapping}`,
  tryAbout: "Muestra lo que la asignación hace con unos datos. No se guarda ni se envía nada.",
  payload: "Datos, en JSON",
  headers: "Encabezados, uno por línea, como X-GitHub-Event: issues",
  notHeader: (line) => `«${line}» no es un encabezado. Se esperaba NAME: VALUE`,
  notJson: "Los datos no son JSON válido.",
  try: "Probar",
  noFindings: "La auditoría no encontró problemas.",
};

export const system: Words["system"] = {
  metrics: "Métricas",
  machine: "Este equipo",
  facts: {
    version: "Versión",
    backend: "Backend",
    device: "Dispositivo",
    memory: "Memoria",
    disk: "Disco",
    running: "Respuestas en curso",
    waiting: "Solicitudes en espera",
    load: "Modelos cargados desde el inicio",
    crash: "Bloqueos desde el inicio",
  },
  memory: (free, total) => `${free} libres de ${total}`,
  free: (size) => `${size} libres`,
  settings: "Ajustes del servidor",
  settingsFrom:
    "Se definen en hearth.json5, en variables de entorno o en la línea de comandos. El servidor los lee al iniciarse.",
  names: {
    host: "Dirección",
    backend: "Backend",
    num_parallel: "Respuestas simultáneas por modelo",
    max_loaded_models: "Modelos en memoria",
    max_queue: "Solicitudes que pueden esperar",
    keep_alive: "Permanencia de los modelos en memoria",
    context_length: "Contexto, tokens",
    gpu_memory: "Memoria de la GPU",
    api_keys: "Claves de API",
    debug: "Registro de depuración",
  },
  auto: "automático",
  forever: "sin límite",
  on: "activado",
  off: "desactivado",
  none: "ninguna",
  key: "Esta pestaña tiene una clave de API",
  forgetKey: "Olvidar la clave",
  forgotKey: "Se olvidó la clave de API de esta pestaña.",
  requests: "Últimas solicitudes",
  requestTable: "Tabla de las últimas solicitudes",
  noRequests: "Todavía no hay solicitudes, aparte de las de esta página.",
  columns: {
    time: "Hora",
    request: "Solicitud",
    status: "Estado",
    took: "Duración",
    model: "Modelo",
    tokens: "Tokens",
    key: "Clave",
  },
};

export const keyDialog: Words["keyDialog"] = {
  title: "Este servidor necesita una clave de API",
  refused: "La clave no es correcta. Pide una válida al administrador de este servidor.",
  about:
    "El administrador de este servidor ha definido claves de API (HEARTH_API_KEYS). Esta pestaña guarda tu clave hasta que la cierres.",
  key: "Clave de API",
  enter: "Introducir la clave",
  use: "Usar esta clave",
};

export const keyboard: Words["keyboard"] = {
  title: "Teclado",
  mac: "En un Mac, usa ⌘ en lugar de Ctrl.",
  newChat: "Nuevo chat",
  search: "Buscar en los chats",
  write: "Escribir un mensaje",
  send: "Enviar",
  newLine: "Nueva línea",
  stop: "Detener la respuesta o cerrar lo que esté abierto",
  editLast: "Editar tu último mensaje, si aún no has escrito nada",
  settings: "Ajustes de este chat",
  undo: "Deshacer una eliminación, durante 10 segundos",
  list: "Esta lista",
};

export const help: Words["help"] = {
  title: "Ayuda",
  topics: [
    {
      title: "Obtener un modelo",
      text: "Abre Modelos y escribe un nombre, por ejemplo llama3.2:1b. Si cierras la página, la descarga se detiene; puedes reanudarla más tarde.",
    },
    {
      title: "Chatear",
      text: "Adjunta archivos con el clip, o arrástralos o pégalos. Edita un mensaje para crear una versión nueva; la anterior se conserva. Los ajustes de arriba a la derecha cambian el prompt del sistema y el muestreo.",
    },
    {
      title: "Tus datos",
      text: "Los chats se quedan en este navegador. Expórtalos desde el menú junto a Chats antes de borrar sus datos.",
    },
    {
      title: "Otros programas",
      text: "Hearth habla las API de Ollama, OpenAI y Anthropic. Indica a un cliente la dirección de esta página.",
    },
    {
      title: "Línea de comandos",
      text: "hearth -h muestra todos los comandos. La carpeta docs de Hearth explica cada ajuste.",
    },
  ],
  api: "Referencia de la API",
};

export const markdown: Words["markdown"] = {
  copied: "Copiado",
  copyCode: "Copiar el código",
  code: "Código",
  codeIn: (language) => `Código en ${language}`,
  table: "Tabla",
};
