/** Chinese, simplified: the models of the server, and of this page. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";
import { descriptions } from "./catalogue.ts";

export const models: Words["models"] = {
  pullLabel: "要下载的模型名称",
  pullHint: "下载模型：llama3.2:1b、hf.co/owner/model-GGUF:Q4_K_M",
  pull: "下载",
  list: "服务器上的模型",
  none: "还没有模型。请按名称下载一个，例如 llama3.2:1b。",
  chat: "对话",
  more: (model) => `${model} 的更多操作`,
  show: "详情",
  load: "立即加载",
  unload: "卸载",
  update: "更新",
  createFrom: "以此创建模型",
  copyTitle: (model) => `复制 ${model}`,
  copyName: "副本名称",
  deleted: (model, size) => `已删除 ${model}（${size}）。`,
  embeds: "生成嵌入",
  inMemory: (size) => `占用内存：${size}`,
  onCpu: "在 CPU 上",
  onGpu: (percent) => `${percent}% 在 GPU 上`,
  context: (tokens) => `上下文 ${tokens} 个 token`,
  leaves: (when) => `${when}卸载`,
  stays: "保持加载",
};

export const catalogue: Words["catalogue"] = {
  title: "模型目录",
  describe: (name, english) => descriptions[name] ?? english,
  purpose: "用途",
  all: "全部",
  purposes: { chat: "对话", reasoning: "推理", code: "代码", vision: "图片", embedding: "嵌入" },
  installed: "已安装",
  chatWith: (model) => `与 ${model} 对话`,
  download: (model) => `下载 ${model}`,
  pausing: (model) => `暂停下载 ${model}`,
  fits: (free) => `可以运行：可用内存 ${free}。`,
  tight: (reason) => `勉强可运行：${reason}。`,
  tooLarge: (reason) => `无法运行：${reason}。`,
  updated: (month) => `数据截至 ${month}。大小为近似值。其他模型请在上方按名称下载。`,
  suggested: "推荐的模型",
};

export const jobs: Words["jobs"] = {
  title: "下载",
  pause: "暂停",
  resume: "继续",
  forget: "移除",
  forgot: (model) => `已移除 ${model} 的下载。`,
  withoutTls: "不使用 TLS 下载",
  progress: (model) => `${model} 的进度`,
  paused: "已暂停。已下载的部分会在服务器上保留一周。",
  stopped: "已停止。",
  checking: "正在检查文件",
  uploading: "正在上传",
  waiting: "等待中",
  downloading: "正在下载",
  downloaded: "已下载。",
  created: "已创建。",
  amount: (done, total) => `${done} / ${total}`,
  rate: (size) => `${size}/s`,
  left: (time) => `剩余 ${time}`,
};

export const modelFiles: Words["modelFiles"] = {
  title: "从文件添加模型",
  add: "添加文件",
  choose: "模型文件",
  action: "添加",
  replaces: (model) => `模型 ${model} 已存在，将被替换。`,
  imagePart: "用于图片",
  busy: (model) => `${model} 已在下载或创建中。`,
  empty: (file) => `${file} 是空文件。`,
  notGguf: (file) => `${file} 不是 GGUF 文件。它可能被重命名过，或者下载不完整。`,
  unreadable: (file) => `浏览器无法读取 ${file}。文件已被移动或更改。`,
  missing: (count, files) =>
    `${counted("zh", count, { other: "缺少模型的 # 个部分：" })}${files}。请同时选择所有部分。`,
  several: "这些文件属于多个模型。请每次只添加一个模型。",
  onlyImages: "此文件只是模型中用于读取图片的部分。请同时添加模型的 GGUF 文件。",
  drop: "拖放文件即可添加附件。GGUF 文件会成为模型。",
};

export const create: Words["create"] = {
  title: "创建模型",
  modelfile: "Modelfile",
  quantize: "量化",
  asIs: "否",
};

export const show: Words["show"] = {
  reading: "正在读取模型",
  parameters: "参数",
  template: "模板",
  license: "许可证",
  copy: (part) => `复制：${part}`,
  facts: {
    architecture: "架构",
    parameter_size: "参数量",
    quantization_level: "量化",
    context_length: "上下文（token）",
    embedding_length: "嵌入长度",
    block_count: "层数",
    "attention.head_count": "注意力头数",
    vocab_size: "词表大小",
    expert_count: "专家数",
  },
};

export const inPage: Words["inPage"] = {
  title: "此页面中的模型",
  insecure: "只有通过 HTTPS 或在 localhost 上，模型才能在此页面中运行。",
  about:
    "对话的模型可以在此页面中运行，而不在服务器上运行。页面只需下载一次模型，并将其保存在此浏览器中。经 MLC 编译的模型只能在这里通过 WebLLM 运行，WebLLM 需要 WebGPU。",
  runsOn: "运行方式",
  backends: {
    auto: "可用的最快方式",
    webgpu: "显卡（WebGPU）",
    wasm: "处理器（WebAssembly）",
    cpu: "参考实现（较慢）",
  },
  look: "显示已缓存的模型",
  nothing: "没有已缓存的模型。",
  used: (usage, quota) => `已用 ${usage}，共 ${quota}`,
  weights: "模型的权重",
  webllm: "WebLLM 的模型",
  partOf: (what) => `部分内容：${what}`,
  onWebLlm: "通过 WebLLM 运行",
  on: (size, backend) => `${size}，${backend}`,
  context: (tokens) => counted("zh", tokens, { other: "上下文 # 个 token" }),
};

export const engine: Words["engine"] = {
  insecure: "只有通过 HTTPS 或在 localhost 上，模型才能在此页面中运行。请改为在服务器上运行模型。",
  starting: "正在此页面中启动引擎",
  startingWebLlm: "正在此页面中启动 WebLLM",
  otherChat: "正在等待另一个对话的回答",
  noWebGpu: "此浏览器不支持 WebGPU，因此模型在处理器上运行。服务器会更快。",
  loading: "正在加载模型",
  fetching: (done, total) => `正在将模型下载到此页面：${done} / ${total}`,
  busy: "另一个标签页正在下载此模型，请稍候。",
  notKept: (why) => `页面无法保存模型（${why}），因此每次都会从服务器读取。`,
  reading: "正在从服务器读取模型",
  advice: {
    runner:
      "页面内存中的模型已丢失。请继续或重试以重新加载。如果再次失败，请在处理器上（模型 → 此页面中的模型）或在服务器上运行。",
    upstream: "页面会保留已下载的部分。请在服务器恢复后重试，其余部分会继续下载。",
    too_large: "请选择更小的模型或上下文，或者在处理器上（模型 → 此页面中的模型）或在服务器上运行。",
  },
  noPictures: "WebLLM 在这里不接受图片。请选择能识别图片的 GGUF 模型。",
  onlyMlc: "WebLLM 只能运行经 MLC 编译的模型。请在服务器上或在此页面中运行此模型。",
  cannotLoad: (why) => `WebLLM 无法加载模型：${why}`,
};
