/** Chinese, simplified: the gateway, the system, and the dialogs of the page. */
import type { Words } from "../en.ts";

export const gateway: Words["gateway"] = {
  parts: "网关的各部分",
  deliveries: "投递",
  mappings: "映射",
  approvals: "批准",
  findings: "检查结果",
  paused: "已暂停",
  waiting: "等待中",
  running: "运行中",
  replies: "待发送的回复",
  messages: "待发送的消息",
  off: {
    title: "让其他系统唤醒模型",
    text: "GitHub 议题变成 Slack 中的摘要，失败的构建变成一份说明。网关接收 webhook，运行模型，并将模型的回答发送到聊天中。",
    how: "网关未启用。请将以下内容添加到 hearth.json5，设置三个变量，然后重启服务器：",
    copy: "复制配置",
    locked: "网关正在运行，但由于未设置令牌，此视图已锁定。请将 gateway.token 添加到 hearth.json5，然后重启服务器。",
    docs: "Hearth 的文件 docs/webhooks.md 对每项设置都有说明。",
  },
  token: "网关令牌",
  tokenHint: "请输入 hearth.json5 中的 gateway.token。此标签页会保留它，直到标签页关闭。",
  tokenRefused: "令牌错误。请输入 hearth.json5 中的 gateway.token。",
  open: "打开",
};

export const pageSettings: Words["pageSettings"] = {
  title: "此页面",
  language: "语言",
  browserLanguage: "浏览器语言",
  titles: "由模型撰写对话标题",
  titlesHint: "在第一条回答之后、没有其他回答正在进行时撰写。参数少于 10 亿的模型不会被使用。",
};

export const approvals: Words["approvals"] = {
  none: "没有等待批准的调用。",
  allow: "允许一次",
  refuse: "拒绝",
  until: (time) => `等待至 ${time}`,
  allowed: (tool) => `已允许调用 ${tool}。`,
  refused: (tool) => `已拒绝调用 ${tool}。`,
};

export const deliveries: Words["deliveries"] = {
  state: "状态",
  any: "全部",
  path: "路径",
  anyPath: "全部",
  none: "还没有投递。",
  earlier: "显示更早的投递",
  replayed: "重放",
  title: "投递",
  replay: "重放",
  replayDead: "全部重放",
  replayReplies: "重新发送所有回复",
  deadCount: (count) => `${count} 个运行已被放弃。将从最早的开始重新运行。`,
  lostCount: (count) => `${count} 条回复失败。将重新发送，不再询问模型。`,
  replaysLeft: (count) => `剩余：${count}`,
  replayedAll: (done, skipped) => `已重放：${done}${skipped > 0 ? `，已跳过：${skipped}` : ""}`,
  headers: "标头",
  body: "正文",
  bodyBase64: "正文（base64）",
  noBody: "由于 hooks.queue.keepBodies 已关闭，正文未保留。",
  received: "接收时间",
  about: "主题",
  mapping: "映射",
  noMapping: "无",
  sender: "发送方",
  request: "请求",
  wake: "唤醒",
  turn: "智能体轮次",
  reply: (state) => `回复：${state}`,
  fate: ({ state, lost }) => (lost === undefined ? state : `${state}，回复：${lost}`),
  prompt: "提示词",
};

export const setup: Words["setup"] = {
  noMappings: "没有映射。只有 /wake 和 /agent 接收 webhook。",
  tryIt: "试一试",
  everyPath: "所有路径",
  repliesTo: (channel) => `回复到 ${channel}`,
  preset: (name) => `预设 ${name}`,
  tryTitle: (mapping) => `试用 ${mapping}`,
  tryAbout: "显示映射如何处理一份载荷。不会保存或发送任何内容。",
  payload: "载荷（JSON）",
  headers: "标头，每行一个，例如 X-GitHub-Event: issues",
  notHeader: (line) => `“${line}”不是标头。应为 NAME: VALUE`,
  notJson: "载荷不是有效的 JSON。",
  try: "试用",
  noFindings: "审核未发现问题。",
};

export const system: Words["system"] = {
  metrics: "指标",
  machine: "本机",
  facts: {
    version: "版本",
    backend: "后端",
    device: "设备",
    memory: "内存",
    disk: "磁盘",
    running: "进行中的回答",
    waiting: "等待中的请求",
    load: "启动以来加载的模型",
    crash: "启动以来的崩溃",
  },
  memory: (free, total) => `可用 ${free}，共 ${total}`,
  free: (size) => `可用 ${size}`,
  settings: "服务器设置",
  settingsFrom: "通过 hearth.json5、环境变量或命令行参数设置。服务器在启动时读取。",
  names: {
    host: "地址",
    backend: "后端",
    num_parallel: "每个模型的并行回答数",
    max_loaded_models: "内存中的模型数",
    max_queue: "可等待的请求数",
    keep_alive: "模型在内存中的保留时间",
    context_length: "上下文（token）",
    gpu_memory: "GPU 内存",
    api_keys: "API 密钥",
    debug: "调试日志",
  },
  auto: "自动",
  forever: "永久",
  on: "开启",
  off: "关闭",
  none: "无",
  key: "此标签页有 API 密钥",
  forgetKey: "清除密钥",
  forgotKey: "已清除此标签页的 API 密钥。",
  requests: "最近的请求",
  requestTable: "最近请求的表格",
  noRequests: "除此页面的请求外，还没有其他请求。",
  columns: {
    time: "时间",
    request: "请求",
    status: "状态",
    took: "耗时",
    model: "模型",
    tokens: "Token",
    key: "密钥",
  },
};

export const keyDialog: Words["keyDialog"] = {
  title: "此服务器需要 API 密钥",
  refused: "密钥错误。请向此服务器的管理员索取有效的密钥。",
  about: "此服务器的管理员设置了 API 密钥（HEARTH_API_KEYS）。此标签页会保留你的密钥，直到标签页关闭。",
  key: "API 密钥",
  enter: "输入密钥",
  use: "使用此密钥",
};

export const keyboard: Words["keyboard"] = {
  title: "键盘",
  mac: "在 Mac 上请用 ⌘ 代替 Ctrl。",
  newChat: "新对话",
  search: "搜索对话",
  write: "输入消息",
  send: "发送",
  newLine: "换行",
  stop: "停止回答，或关闭已打开的内容",
  editLast: "尚未输入内容时，编辑你的上一条消息",
  settings: "此对话的设置",
  undo: "撤销删除，10 秒内有效",
  list: "此列表",
};

export const help: Words["help"] = {
  title: "帮助",
  topics: [
    {
      title: "获取模型",
      text: "打开“模型”并输入名称，例如 llama3.2:1b。关闭页面后下载会停止，之后可以继续。",
    },
    {
      title: "对话",
      text: "可用回形针添加附件，也可拖放或粘贴文件。编辑消息会生成新版本，旧版本会保留。右上角的设置可更改系统提示词和采样参数。",
    },
    {
      title: "你的数据",
      text: "对话保存在此浏览器中。清除浏览器数据之前，请通过“对话”旁边的菜单导出。",
    },
    {
      title: "其他程序",
      text: "Hearth 支持 Ollama、OpenAI 和 Anthropic 的 API。将客户端指向此页面的地址即可。",
    },
    {
      title: "命令行",
      text: "hearth -h 会列出所有命令。Hearth 的 docs 文件夹对每项设置都有说明。",
    },
  ],
  api: "API 参考",
};

export const markdown: Words["markdown"] = {
  copied: "已复制",
  copyCode: "复制代码",
  code: "代码",
  codeIn: (language) => `${language} 代码`,
  table: "表格",
};
