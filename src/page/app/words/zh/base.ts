/** Chinese, simplified: the frame of the page, and what every view uses. */
import type { Words } from "../en.ts";

export const base: Words["base"] = {
  skip: "跳到主要内容",
  chatsAndViews: "对话与视图",
  newChat: "新对话",
  search: "搜索",
  models: "模型",
  gateway: "网关",
  system: "系统",
  serverGone: "无法连接服务器。页面会继续尝试连接。对话已安全保存在此浏览器中。",
  notKept: (why) => `关闭此标签页后对话将会丢失，因为浏览器无法保存：${why}`,
  unreachable: "无法连接服务器。请在服务器恢复后重试。",
  undo: "撤销",
  close: "关闭",
  cancel: "取消",
  save: "保存",
  delete: "删除",
  create: "创建",
  name: "名称",
  noMatches: "没有匹配项。",
  themes: { auto: "自动", light: "浅色", dark: "深色" },
  theme: (now) => `配色：${now}`,
  changeTheme: (now, next) => `配色：${now}。切换为${next}。`,
};
