/** Spanish: chats. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";

export const chats: Words["chats"] = {
  heading: "Chats",
  none: "Tus chats se guardan solo en este navegador.",
  more: (title) => `Más acciones para ${title}`,
  rename: "Cambiar nombre",
  export: "Exportar",
  exportMarkdown: "Exportar como Markdown",
  name: "Nombre del chat",
  transfer: "Carpetas, importar y exportar",
  import: "Importar chats",
  exportAll: "Exportar todos los chats",
  files: "Archivos con chats",
  imported: (count) =>
    counted("es", count, { one: "# chat importado.", many: "# de chats importados.", other: "# chats importados." }),
  notChats: (file) => `${file} no contiene chats de Hearth. Elige un archivo creado con «Exportar».`,
  deleted: (title, messages) => {
    const count = counted("es", messages, { one: "# mensaje", many: "# de mensajes", other: "# mensajes" });
    return `Se eliminó «${title}» con ${count}.`;
  },
  notHere: "Este chat no está en este navegador. Se eliminó o se empezó en otro navegador.",
  days: { today: "Hoy", yesterday: "Ayer", week: "Últimos 7 días", month: "Últimos 30 días" },
  pinned: "Fijados",
  pin: "Fijar arriba",
  unpin: "Dejar de fijar",
  move: "Mover a una carpeta",
  moveTitle: (title) => `Mover «${title}»`,
  noFolder: "Sin carpeta",
  newFolder: "Nueva carpeta",
  folderName: "Nombre de la carpeta",
  moreFolder: (name) => `Más acciones para la carpeta ${name}`,
  deleteFolder: "Eliminar la carpeta y conservar sus chats",
  deletedFolder: (name) => `Se eliminó la carpeta «${name}». Sus chats se conservan.`,
  search: "Buscar en los chats",
  results: "Resultados de la búsqueda",
};

export const chat: Words["chat"] = {
  pictureTitle: "Imagen",
  you: "Tú",
  answer: "Respuesta",
  tool: "Herramienta",
  beingWritten: (who) => `${who}, escribiendo`,
  messages: "Mensajes",
  toEnd: "Ir al final",
  answering: "El modelo está respondiendo",
  anotherTab: "Otra pestaña está escribiendo esta respuesta.",
  waiting: "Esperando al modelo",
  writing: "Escribiendo",
  thinking: "Pensando",
  thoughts: "Razonamiento",
  rate: (tokens) => `${tokens} tokens/s`,
  tokens: (count) => counted("es", count, { one: "# token", many: "# de tokens", other: "# tokens" }),
  wasCut: "los mensajes más antiguos no cabían y se omitieron",
  inPage: "en esta página",
  inWebLlm: "en esta página, con WebLLM",
  stopped: "Detenida.",
  limit: "La respuesta alcanzó su longitud máxima.",
  goOn: "Continuar",
  goOnWith: "Continuar esta respuesta",
  tryAgain: "Reintentar",
  getAnswer: "Obtener una respuesta",
  copy: "Copiar",
  copyMarkdown: "Copiar como Markdown",
  copied: "Mensaje copiado como Markdown.",
  systemPrompt: "Prompt del sistema",
  attachedNames: (names) => `Archivos adjuntos: ${names}`,
  pictures: (count) => counted("es", count, { one: "# imagen", many: "# de imágenes", other: "# imágenes" }),
  edit: "Editar",
  readAloud: "Leer en voz alta",
  stopReading: "Detener la lectura",
  again: "Responder de nuevo",
  againWith: (model) => `Responder de nuevo con ${model}`,
  more: "Más",
  deleteFrom: (count) =>
    counted("es", count, {
      one: "Eliminar este mensaje",
      many: "Eliminar # de mensajes desde aquí",
      other: "Eliminar # mensajes desde aquí",
    }),
  deleted: (count) =>
    counted("es", count, {
      one: "Se eliminó # mensaje.",
      many: "Se eliminaron # de mensajes.",
      other: "Se eliminaron # mensajes.",
    }),
  version: (at, all) => `Versión ${at} de ${all}`,
  versionBefore: "Versión anterior",
  versionAfter: "Versión siguiente",
  attached: "Imagen adjunta",
  calls: (name) => `Llama a ${name}`,
  result: (name) => `Resultado de ${name}`,
  giveResults: "Enviar resultados",
  yourMessage: "Tu mensaje",
  theAnswer: "La respuesta",
  changed: "Mensaje modificado.",
  discarded: "Cambios descartados.",
  askAgain: "Enviar como versión nueva",
  busy: "El modelo aún está respondiendo. Espera a que termine o detenlo.",
  elsewhere: "Otra pestaña está respondiendo en este chat. Espera a que termine o detenla allí.",
  notSaved: (why) => `No se pudo guardar este chat: ${why}`,
  noRoom: "el navegador no tiene más espacio para esta página. Exporta y elimina algunos chats.",
  interrupted: "La página se cerró antes de que terminara esta respuesta.",
  noEnd: "La respuesta terminó sin indicar el motivo.",
  lost: "No se puede acceder al servidor. Lo que llegó está guardado: continúa cuando el servidor vuelva a estar disponible.",
  unreachable:
    "No se puede acceder al servidor. Tu mensaje está guardado: inténtalo de nuevo cuando el servidor vuelva a estar disponible.",
};

export const toolCalls: Words["toolCalls"] = {
  asks: (tool) => `El modelo quiere llamar a ${tool}.`,
  wasBegun: "Un intento anterior se interrumpió. Es posible que ya haya tenido efecto.",
  decisions: {
    once: "Permitir una vez",
    always: "Siempre en este chat",
    no: "Rechazar",
    never: "Nunca en este chat",
  },
  underWay: (tool) => `Llamando a ${tool}`,
  stop: "Detener esta llamada",
  failed: "con error",
  result: "Resultado",
  noOutput: "(sin salida)",
  shortened: "Solo se muestra el principio. El modelo recibe el resultado completo.",
};

export const toolServers: Words["toolServers"] = {
  title: "Servidores de herramientas",
  hint: "El modelo puede llamar a las herramientas de los servidores activados. La página te pregunta antes de cada llamada, salvo que la configuración indique que la herramienta es inofensiva.",
  tools: (count) => counted("es", count, { one: "# herramienta", other: "# herramientas" }),
  always: (tools) => `Se llaman sin preguntar: ${tools}.`,
  never: (tools) => `No se llaman nunca: ${tools}.`,
  askAgain: "Volver a preguntar",
  missing: (server, why) => `Faltan las herramientas de ${server}: ${why || "no está configurado."}`,
};

export const compare: Words["compare"] = {
  title: "Respuestas en paralelo",
  hint: (model, others) =>
    `Elige hasta ${counted("es", others, { one: "# modelo que responda", other: "# modelos que respondan" })} también a cada pregunta. ${model} es el modelo de este chat.`,
  also: (models) => `También responde: ${models}`,
  off: "Desactivar",
  goOn: "Seguir con esta respuesta",
  goOnWith: (model) => `Seguir con esta respuesta de ${model}`,
};

export const prompts: Words["prompts"] = {
  title: "Prompts guardados",
  manage: "Editar los prompts guardados",
  kinds: {
    message: {
      heading: "Prompts",
      hint: "Escribe / y el nombre de un prompt en el campo del mensaje para insertar su texto.",
      add: "Nuevo prompt",
    },
    system: {
      heading: "Prompts del sistema guardados",
      hint: "Un chat nuevo puede empezar con uno de ellos.",
      add: "Nuevo prompt del sistema",
    },
  },
  text: "Texto",
  saveSystem: "Guardar este prompt del sistema",
  choose: "Elegir un prompt del sistema guardado",
  edit: (name) => `Editar ${name}`,
  delete: (name) => `Eliminar ${name}`,
  deleted: (name) => `Se eliminó el prompt «${name}».`,
};

export const composer: Words["composer"] = {
  message: "Mensaje",
  placeholder: "Escribe un mensaje",
  send: "Enviar",
  stop: "Detener",
  attach: "Adjuntar archivos",
  files: "Archivos",
  attachments: "Archivos adjuntos",
  remove: (name) => `Quitar ${name}`,
  picture: "imagen",
  removed: (name) => `Se quitó ${name}.`,
  context: "Contexto usado",
  contextHint: (tokens) => `Este chat usa unos ${tokens} tokens del contexto del modelo.`,
  contextOf: (used, size) => `${used} de ${size} tokens`,
  contextUsed: (used) => `${used} tokens`,
  cannotSee: (model) => `${model} no puede ver imágenes.`,
  cannotChat: (model) => `${model} no puede chatear: genera embeddings.`,
  gone: (model) => `${model} ya no está en el servidor.`,
  use: (model) => `Usar ${model}`,
  getSeeing: "Obtener un modelo que vea imágenes",
  getModel: "Obtener un modelo",
  removePictures: "Quitar las imágenes",
};

export const attachments: Words["attachments"] = {
  textTooLarge: (file, limit) => `${file} es demasiado grande. Un archivo de texto puede ocupar hasta ${limit}.`,
  pictureTooLarge: (file, limit) => `${file} es demasiado grande. Una imagen puede ocupar hasta ${limit}.`,
  unknown: (file) => `${file} no es una imagen ni un archivo de texto.`,
  documentTooLarge: (file, limit) => `${file} es demasiado grande. Un documento puede tener hasta ${limit}.`,
  tookTooLong: (file) => `Leer ${file} ha llevado más de un minuto. Adjunta solo una parte.`,
  faults: {
    protected: (file) => `${file} tiene contraseña o es de un Office antiguo. Guárdalo de nuevo sin contraseña.`,
    noText: (file) => `${file} no tiene texto. Si está escaneado, adjunta sus páginas como imágenes.`,
    damaged: (file) => `${file} está dañado y no se puede leer.`,
    unpacked: (file) => `${file} es demasiado grande una vez descomprimido.`,
    unknown: (file) => `${file} no es una imagen, ni un texto, ni un documento que esta página pueda leer.`,
  },
  reading: (file) => `Leyendo ${file}`,
  readingPage: (file, page) => `Leyendo ${file}, página ${page}`,
  stopReading: (file) => `Dejar de leer ${file}`,
  parts: {
    pages: (count) => counted("es", count, { one: "# página", many: "# de páginas", other: "# páginas" }),
    slides: (count) =>
      counted("es", count, { one: "# diapositiva", many: "# de diapositivas", other: "# diapositivas" }),
    sheets: (count) => counted("es", count, { one: "# hoja", many: "# de hojas", other: "# hojas" }),
  },
  about: (tokens) => `unos ${tokens}`,
  firstPart: "primera parte",
  tooLong: (tokens, model, context) =>
    `Los archivos ocupan ${tokens} tokens. El contexto de ${model} tiene ${context}.`,
  useFirst: "Usar la primera parte",
  shortened: (file) => `Se ha acortado ${file}.`,
  unreadable: (file) => `Este navegador no puede leer la imagen ${file}.`,
};

export const welcome: Words["welcome"] = {
  title: "¿Qué tienes en mente?",
  private: "Los modelos se ejecutan en tu propio equipo. Los chats se quedan en este navegador.",
  prompts: [
    { label: "Contar una historia", text: "Cuéntame una historia corta sobre un farero." },
    { label: "Explicar un archivo", text: "Explica este archivo.", wantsFile: true },
    { label: "Escribir JSON", text: "Escribe un objeto JSON que describa un libro. Responde solo con JSON." },
  ],
  demo: (size) => `Este es un modelo de demostración de ${size}.`,
  getUseful: "Obtener uno que sea útil →",
  noModel: "Este servidor no tiene ningún modelo que pueda chatear.",
  getOne: "Obtener uno →",
};

export const modelMenu: Words["modelMenu"] = {
  button: (model) => `Modelo: ${model}`,
  title: "Elegir un modelo",
  none: "Ningún modelo",
  gone: "eliminado",
  search: "Buscar modelos",
  more: "Obtener más modelos…",
  loaded: "en memoria",
  sees: "puede ver imágenes",
  calls: "puede llamar a herramientas",
  thinks: "puede pensar primero",
  where: (place) => `Se ejecuta ${place}`,
  places: { server: "en el servidor", page: "en esta página", webllm: "en esta página, con WebLLM" },
  whyNot: {
    server: "Este modelo solo se ejecuta con WebLLM.",
    page: "El formato de este modelo no se ejecuta en una página.",
    webllm: "Con WebLLM solo se ejecutan modelos compilados por MLC.",
  },
};

export const options: Words["options"] = {
  title: "Ajustes de este chat",
  systemHint: "Instrucciones para el modelo, antes del primer mensaje",
  think: "Razonamiento",
  thinking: { auto: "Según el modelo", on: "Activado", off: "Desactivado" },
  names: {
    temperature: "Temperatura",
    top_p: "Top p",
    top_k: "Top k",
    min_p: "Min p",
    repeat_penalty: "Penalización por repetición",
    seed: "Semilla",
    num_predict: "Longitud máxima, tokens",
    num_ctx: "Contexto, tokens",
  },
  notInside: (min, max, isDecimal) => `No se usa. Se espera un número ${isDecimal ? "" : "entero "}de ${min} a ${max}.`,
  modelsOwn: "predeterminado",
  tools: "Herramientas, en JSON",
  notTools: 'Esto no es una lista de herramientas. Se esperaba JSON como [{"type": "function", …}].',
};
