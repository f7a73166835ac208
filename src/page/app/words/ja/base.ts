/** Japanese: the frame of the page, and what every view uses. */
import type { Words } from "../en.ts";

export const base: Words["base"] = {
  skip: "本文へ移動",
  chatsAndViews: "チャットと画面",
  newChat: "新しいチャット",
  search: "検索",
  models: "モデル",
  gateway: "ゲートウェイ",
  system: "システム",
  serverGone:
    "サーバーに接続できません。このページは再接続を続けています。チャットはこのブラウザーに保存されています。",
  notKept: (why) => `ブラウザーに保存できないため、このタブを閉じるとチャットは失われます：${why}`,
  unreachable: "サーバーに接続できません。サーバーが復旧してからもう一度お試しください。",
  undo: "元に戻す",
  close: "閉じる",
  cancel: "キャンセル",
  save: "保存",
  delete: "削除",
  create: "作成",
  name: "名前",
  noMatches: "見つかりませんでした。",
  themes: { auto: "自動", light: "ライト", dark: "ダーク" },
  theme: (now) => `配色：${now}`,
  changeTheme: (now, next) => `配色：${now}。${next}に切り替えます。`,
};
