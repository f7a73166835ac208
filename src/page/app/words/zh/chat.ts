/** Chinese, simplified: chats. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";

/** The list of chats, and search in it. */
export const chats: Words["chats"] = {
  heading: "对话",
  none: "对话仅保存在此浏览器中。",
  more: (title) => `“${title}”的更多操作`,
  rename: "重命名",
  export: "导出",
  exportMarkdown: "导出为 Markdown",
  name: "对话名称",
  transfer: "文件夹、导入和导出",
  import: "导入对话",
  exportAll: "导出所有对话",
  files: "对话文件",
  imported: (count) => counted("zh", count, { other: "已导入 # 个对话。" }),
  notChats: (file) => `${file} 中没有 Hearth 的对话。请选择通过“导出”生成的文件。`,
  deleted: (title, messages) => `已删除“${title}”及其${counted("zh", messages, { other: " # 条消息" })}。`,
  notHere: "此浏览器中没有这个对话。它可能已被删除，或是在其他浏览器中开始的。",
  days: { today: "今天", yesterday: "昨天", week: "过去 7 天", month: "过去 30 天" },
  pinned: "已置顶",
  pin: "置顶",
  unpin: "取消置顶",
  move: "移动到文件夹",
  moveTitle: (title) => `移动“${title}”`,
  noFolder: "无文件夹",
  newFolder: "新建文件夹",
  folderName: "文件夹名称",
  moreFolder: (name) => `文件夹“${name}”的更多操作`,
  deleteFolder: "删除文件夹，保留其中的对话",
  deletedFolder: (name) => `已删除文件夹“${name}”，其中的对话已保留。`,
  search: "搜索对话",
  results: "搜索结果",
};

/** A chat: its messages, and what can be done with them. */
export const chat: Words["chat"] = {
  pictureTitle: "图片",
  you: "你",
  answer: "回答",
  tool: "工具",
  beingWritten: (who) => `${who}，正在输出`,
  messages: "消息",
  toEnd: "跳到末尾",
  answering: "模型正在回答",
  anotherTab: "另一个标签页正在输出这条回答。",
  waiting: "正在等待模型",
  writing: "正在输出",
  thinking: "正在思考",
  thoughts: "思考过程",
  rate: (tokens) => `${tokens} token/s`,
  tokens: (count) => counted("zh", count, { other: "# 个 token" }),
  wasCut: "最早的消息超出上下文，已被省略",
  inPage: "在此页面中",
  inWebLlm: "在此页面中，使用 WebLLM",
  stopped: "已停止。",
  limit: "回答已达到长度上限。",
  goOn: "继续",
  goOnWith: "继续此回答",
  tryAgain: "重试",
  getAnswer: "获取回答",
  copy: "复制",
  copyMarkdown: "复制为 Markdown",
  copied: "已将消息复制为 Markdown。",
  systemPrompt: "系统提示词",
  attachedNames: (names) => `附件：${names}`,
  pictures: (count) => counted("zh", count, { other: "# 张图片" }),
  edit: "编辑",
  readAloud: "朗读",
  stopReading: "停止朗读",
  again: "重新回答",
  againWith: (model) => `用 ${model} 重新回答`,
  more: "更多",
  deleteFrom: (count) => (count === 1 ? "删除此消息" : counted("zh", count, { other: "删除从这里开始的 # 条消息" })),
  deleted: (count) => counted("zh", count, { other: "已删除 # 条消息。" }),
  version: (at, all) => `版本 ${at}，共 ${all} 个`,
  versionBefore: "上一个版本",
  versionAfter: "下一个版本",
  attached: "附加的图片",
  calls: (name) => `调用 ${name}`,
  result: (name) => `${name} 的结果`,
  giveResults: "发送结果",
  yourMessage: "你的消息",
  theAnswer: "回答",
  changed: "消息已修改。",
  discarded: "已放弃修改。",
  askAgain: "作为新版本发送",
  elsewhere: "另一个标签页正在回答此对话。请等待，或在那里停止。",
  notSaved: (why) => `无法保存此对话：${why}`,
  noRoom: "浏览器已没有可供此页面使用的存储空间。请导出并删除一些对话。",
  interrupted: "页面在这条回答完成前被关闭了。",
  noEnd: "回答结束，但未说明原因。",
  lost: "无法连接服务器。已收到的内容已保存，服务器恢复后可继续。",
  unreachable: "无法连接服务器。你的消息已保存，请在服务器恢复后重试。",
};

/** 模型请求的工具调用。 */
export const toolCalls: Words["toolCalls"] = {
  asks: (tool) => `模型想要调用 ${tool}。`,
  wasBegun: "之前的一次调用被中断，可能已经生效。",
  decisions: { once: "允许一次", always: "在此对话中始终允许", no: "拒绝", never: "在此对话中始终拒绝" },
  underWay: (tool) => `正在调用 ${tool}`,
  stop: "停止此调用",
  failed: "失败",
  result: "结果",
  noOutput: "（无输出）",
  shortened: "仅显示开头部分。模型会收到完整结果。",
};

export const toolServers: Words["toolServers"] = {
  title: "工具服务器",
  hint: "模型可以调用已开启的服务器的工具。除配置中标为无害的工具外，每次调用前都会询问你。",
  tools: (count) => counted("zh", count, { other: "# 个工具" }),
  always: (tools) => `直接调用：${tools}。`,
  never: (tools) => `从不调用：${tools}。`,
  askAgain: "重新询问",
  missing: (server, why) => `无法使用 ${server} 的工具：${why || "尚未配置。"}`,
};

/** Several models that answer one question. */
export const compare: Words["compare"] = {
  title: "并排对比回答",
  hint: (model, others) =>
    `最多再选择 ${counted("zh", others, { other: "# 个模型" })}来同时回答每个问题。${model} 是此对话的模型。`,
  also: (models) => `同时回答：${models}`,
  off: "关闭",
  goOn: "以此回答继续",
  goOnWith: (model) => `以 ${model} 的这个回答继续`,
};

/** Texts that are saved for later. */
export const prompts: Words["prompts"] = {
  title: "已保存的提示词",
  manage: "编辑已保存的提示词",
  kinds: {
    message: {
      heading: "提示词",
      hint: "在消息输入框中输入 / 和提示词名称，即可插入其文本。",
      add: "新建提示词",
    },
    system: {
      heading: "已保存的系统提示词",
      hint: "新对话可以从其中一个开始。",
      add: "新建系统提示词",
    },
  },
  text: "文本",
  saveSystem: "保存此系统提示词",
  choose: "选择已保存的系统提示词",
  edit: (name) => `编辑 ${name}`,
  delete: (name) => `删除 ${name}`,
  deleted: (name) => `已删除提示词“${name}”。`,
};

/** The field for messages. */
export const composer: Words["composer"] = {
  message: "消息",
  placeholder: "输入消息",
  send: "发送",
  stop: "停止",
  attach: "添加附件",
  files: "文件",
  attachments: "附件",
  remove: (name) => `移除 ${name}`,
  picture: "图片",
  removed: (name) => `已移除 ${name}。`,
  context: "已用上下文",
  contextHint: (tokens) => `此对话约占用模型上下文中的 ${tokens} 个 token。`,
  contextOf: (used, size) => `${used} / ${size} 个 token`,
  contextUsed: (used) => `${used} 个 token`,
  cannotSee: (model) => `${model} 无法识别图片。`,
  cannotChat: (model) => `${model} 不能对话：它用于生成嵌入。`,
  gone: (model) => `${model} 已不在服务器上。`,
  use: (model) => `使用 ${model}`,
  getSeeing: "获取能识别图片的模型",
  getModel: "获取模型",
  removePictures: "移除图片",
};

/** Files that cannot be attached. */
export const attachments: Words["attachments"] = {
  textTooLarge: (file, limit) => `${file} 过大。文本文件最大为 ${limit}。`,
  pictureTooLarge: (file, limit) => `${file} 过大。图片最大为 ${limit}。`,
  unknown: (file) => `${file} 既不是图片，也不是文本文件。`,
  documentTooLarge: (file, limit) => `${file} 太大。文档最大为 ${limit}。`,
  tookTooLong: (file) => `读取 ${file} 超过了一分钟。请只添加其中一部分。`,
  faults: {
    protected: (file) => `${file} 有密码，或来自旧版 Office。请去掉密码后重新保存。`,
    noText: (file) => `${file} 中没有文字，可能是扫描件：请把页面作为图片添加。`,
    damaged: (file) => `${file} 已损坏，无法读取。`,
    unpacked: (file) => `${file} 解压后太大。`,
    unknown: (file) => `${file} 不是图片、文本，也不是此页面能读取的文档。`,
  },
  reading: (file) => `正在读取 ${file}`,
  readingPage: (file, page) => `正在读取 ${file}，第 ${page} 页`,
  stopReading: (file) => `停止读取 ${file}`,
  parts: {
    pages: (count) => counted("zh", count, { other: "# 页" }),
    slides: (count) => counted("zh", count, { other: "# 张幻灯片" }),
    sheets: (count) => counted("zh", count, { other: "# 个工作表" }),
  },
  about: (tokens) => `约 ${tokens}`,
  firstPart: "开头部分",
  tooLong: (tokens, model, context) => `这些文件需要 ${tokens} 个 token。${model} 的上下文为 ${context} 个。`,
  useFirst: "使用开头部分",
  shortened: (file) => `已截短 ${file}。`,
  unreadable: (file) => `此浏览器无法读取图片 ${file}。`,
};

/** A chat that has not begun. */
export const welcome: Words["welcome"] = {
  title: "今天想聊点什么？",
  private: "模型在你自己的计算机上运行。对话保存在此浏览器中。",
  prompts: [
    { label: "讲个故事", text: "给我讲一个关于灯塔看守人的小故事。" },
    { label: "解释文件", text: "解释一下这个文件。", wantsFile: true },
    { label: "编写 JSON", text: "写一个描述一本书的 JSON 对象。只用 JSON 回答。" },
  ],
  demo: (size) => `这是一个 ${size} 的演示模型。`,
  getUseful: "获取实用的模型 →",
  noModel: "此服务器上没有可以对话的模型。",
  getOne: "获取模型 →",
};

/** The menu of models. */
export const modelMenu: Words["modelMenu"] = {
  button: (model) => `模型：${model}`,
  title: "选择模型",
  none: "无模型",
  gone: "已删除",
  search: "搜索模型",
  more: "获取更多模型…",
  loaded: "已载入内存",
  sees: "能识别图片",
  calls: "能调用工具",
  thinks: "能先思考",
  where: (place) => `${place}运行`,
  places: { server: "在服务器上", page: "在此页面中", webllm: "在此页面中通过 WebLLM " },
  whyNot: {
    server: "此模型只能通过 WebLLM 运行。",
    page: "此模型的格式无法在页面中运行。",
    webllm: "只有经 MLC 编译的模型才能通过 WebLLM 运行。",
  },
};

/** Settings of a chat. */
export const options: Words["options"] = {
  title: "此对话的设置",
  systemHint: "在第一条消息之前给模型的指令",
  think: "思考",
  thinking: { auto: "模型默认", on: "开启", off: "关闭" },
  names: {
    temperature: "温度",
    top_p: "Top p",
    top_k: "Top k",
    min_p: "Min p",
    repeat_penalty: "重复惩罚",
    seed: "随机种子",
    num_predict: "回答长度上限（token）",
    num_ctx: "上下文（token）",
  },
  modelsOwn: "默认",
  tools: "工具（JSON）",
  notTools: '这不是工具列表。应为 JSON，例如 [{"type": "function", …}]。',
};
