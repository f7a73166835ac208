/** Spanish: the models of the server, and of this page. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";
import { descriptions } from "./catalogue.ts";

export const models: Words["models"] = {
  pullLabel: "Nombre del modelo que se va a descargar",
  pullHint: "Descargar un modelo: llama3.2:1b, hf.co/owner/model-GGUF:Q4_K_M",
  pull: "Descargar",
  list: "Modelos en el servidor",
  none: "Todavía no hay modelos. Descarga uno por su nombre, por ejemplo llama3.2:1b.",
  chat: "Chatear",
  more: (model) => `Más acciones para ${model}`,
  show: "Detalles",
  load: "Cargar ahora",
  unload: "Descargar de la memoria",
  update: "Actualizar",
  createFrom: "Crear un modelo a partir de este",
  copyTitle: (model) => `Copiar ${model}`,
  copyName: "Nombre de la copia",
  deleted: (model, size) => `Se eliminó ${model} (${size}).`,
  embeds: "genera embeddings",
  inMemory: (size) => `En memoria: ${size}`,
  onCpu: "en la CPU",
  onGpu: (percent) => `${percent}\u00a0% en la GPU`,
  context: (tokens) => `contexto de ${tokens} tokens`,
  leaves: (when) => `sale de la memoria ${when}`,
  stays: "sigue cargado",
};

export const catalogue: Words["catalogue"] = {
  title: "Catálogo",
  describe: (name, english) => descriptions[name] ?? english,
  purpose: "Uso",
  all: "Todos",
  purposes: { chat: "Chat", reasoning: "Razonamiento", code: "Código", vision: "Imágenes", embedding: "Embeddings" },
  installed: "instalado",
  chatWith: (model) => `Chatear con ${model}`,
  download: (model) => `Descargar ${model}`,
  pausing: (model) => `Pausar la descarga de ${model}`,
  fits: (free) => `Cabe: hay ${free} de memoria libres.`,
  tight: (reason) => `Justo: ${reason}.`,
  tooLarge: (reason) => `No cabe: ${reason}.`,
  updated: (month) => `Datos de ${month}. Los tamaños son aproximados. Otros modelos: arriba, por su nombre.`,
  suggested: "Modelos sugeridos",
};

export const jobs: Words["jobs"] = {
  title: "Descargas",
  pause: "Pausar",
  resume: "Reanudar",
  forget: "Quitar",
  forgot: (model) => `Se quitó la descarga de ${model}.`,
  withoutTls: "Descargar sin TLS",
  progress: (model) => `Progreso de ${model}`,
  paused: "En pausa. El servidor conserva la parte descargada durante una semana.",
  stopped: "Detenido.",
  checking: "Comprobando el archivo",
  uploading: "Subiendo",
  waiting: "En espera",
  downloading: "Descargando",
  downloaded: "Descargado.",
  created: "Creado.",
  amount: (done, total) => `${done} de ${total}`,
  rate: (size) => `${size}/s`,
  left: (time) => `quedan ${time}`,
};

export const modelFiles: Words["modelFiles"] = {
  title: "Añadir un modelo a partir de archivos",
  add: "Añadir archivos",
  choose: "Archivos del modelo",
  action: "Añadir",
  replaces: (model) => `El modelo ${model} ya existe. Se reemplazará.`,
  imagePart: "para imágenes",
  busy: (model) => `${model} ya se está descargando o creando.`,
  empty: (file) => `${file} está vacío.`,
  notGguf: (file) => `${file} no es un archivo GGUF. Se le cambió el nombre o su descarga está incompleta.`,
  unreadable: (file) => `El navegador no puede leer ${file}. El archivo se movió o se modificó.`,
  missing: (count, files) =>
    `${counted("es", count, { one: "Falta una parte del modelo:", other: "Faltan # partes del modelo:" })} ${files}. Elige todas las partes juntas.`,
  several: "Estos archivos son más de un modelo. Añade los modelos de uno en uno.",
  onlyImages: "Este archivo es solo la parte de un modelo que lee imágenes. Añade también el archivo GGUF del modelo.",
  drop: "Suelta archivos para adjuntarlos. Los archivos GGUF se convierten en un modelo.",
};

export const create: Words["create"] = {
  title: "Crear un modelo",
  modelfile: "Modelfile",
  quantize: "Cuantizar",
  asIs: "No",
};

export const show: Words["show"] = {
  reading: "Leyendo el modelo",
  parameters: "Parámetros",
  template: "Plantilla",
  license: "Licencia",
  copy: (part) => `Copiar: ${part}`,
  facts: {
    architecture: "Arquitectura",
    parameter_size: "Parámetros",
    quantization_level: "Cuantización",
    context_length: "Contexto, tokens",
    embedding_length: "Longitud de los embeddings",
    block_count: "Bloques",
    "attention.head_count": "Cabezas de atención",
    vocab_size: "Vocabulario",
    expert_count: "Expertos",
  },
};

export const inPage: Words["inPage"] = {
  title: "Modelos en esta página",
  insecure: "Los modelos solo se ejecutan en esta página con HTTPS o en localhost.",
  about:
    "Un chat puede ejecutar su modelo en esta página en lugar de en el servidor. La página descarga el modelo una sola vez y lo guarda en este navegador. Los modelos compilados por MLC solo se ejecutan aquí, con WebLLM, que necesita WebGPU.",
  runsOn: "Ejecutar en",
  backends: {
    auto: "lo más rápido disponible",
    webgpu: "la tarjeta gráfica (WebGPU)",
    wasm: "el procesador (WebAssembly)",
    cpu: "la implementación de referencia (lenta)",
  },
  look: "Mostrar los modelos en caché",
  nothing: "No hay modelos en caché.",
  used: (usage, quota) => `${usage} de ${quota} en uso`,
  weights: "Pesos de un modelo",
  webllm: "Un modelo para WebLLM",
  partOf: (what) => `Parte de: ${what}`,
  onWebLlm: "se ejecuta con WebLLM",
  on: (size, backend) => `${size} en ${backend}`,
  context: (tokens) =>
    counted("es", tokens, {
      one: "contexto de # token",
      many: "contexto de # de tokens",
      other: "contexto de # tokens",
    }),
};

export const engine: Words["engine"] = {
  insecure: "Los modelos solo se ejecutan en esta página con HTTPS o en localhost. Ejecuta el modelo en el servidor.",
  starting: "Iniciando el motor en esta página",
  startingWebLlm: "Iniciando WebLLM en esta página",
  otherChat: "Esperando la respuesta de otro chat",
  noWebGpu: "Este navegador no tiene WebGPU, así que el modelo se ejecuta en el procesador. El servidor es más rápido.",
  loading: "Cargando el modelo",
  fetching: (done, total) => `Descargando el modelo en esta página: ${done} de ${total}`,
  busy: "Otra pestaña está descargando este modelo. Esperando a que termine.",
  notKept: (why) => `La página no puede guardar el modelo (${why}). Lo lee del servidor cada vez.`,
  reading: "Leyendo el modelo del servidor",
  advice: {
    runner:
      "La página perdió el modelo de su memoria. Continúa o reinténtalo para cargarlo. Si vuelve a fallar, ejecútalo en el procesador (Modelos, Modelos en esta página) o en el servidor.",
    upstream:
      "La página conserva lo que descargó. Inténtalo de nuevo cuando el servidor vuelva a estar disponible y se descargará el resto.",
    too_large:
      "Elige un modelo o un contexto más pequeño, o ejecútalo en el procesador (Modelos, Modelos en esta página) o en el servidor.",
  },
  noPictures: "WebLLM no acepta imágenes aquí. Elige un modelo GGUF que pueda ver imágenes.",
  onlyMlc: "WebLLM solo ejecuta modelos compilados por MLC. Ejecuta este modelo en el servidor o en esta página.",
  cannotLoad: (why) => `WebLLM no puede cargar el modelo: ${why}`,
};
