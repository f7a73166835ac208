/** Japanese: chats. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";

/** The list of chats, and search in it. */
export const chats: Words["chats"] = {
  heading: "チャット",
  none: "チャットはこのブラウザーにのみ保存されます。",
  more: (title) => `「${title}」のその他の操作`,
  rename: "名前を変更",
  export: "エクスポート",
  exportMarkdown: "Markdown でエクスポート",
  name: "チャットの名前",
  transfer: "フォルダー、インポート、エクスポート",
  import: "チャットをインポート",
  exportAll: "すべてのチャットをエクスポート",
  files: "チャットのファイル",
  imported: (count) => counted("ja", count, { other: "# 件のチャットをインポートしました。" }),
  notChats: (file) =>
    `${file} には Hearth のチャットが含まれていません。「エクスポート」で作成したファイルを選択してください。`,
  deleted: (title, messages) =>
    `「${title}」を削除しました（${counted("ja", messages, { other: "メッセージ # 件" })}）。`,
  notHere: "このチャットはこのブラウザーにありません。削除されたか、別のブラウザーで開始されたものです。",
  days: { today: "今日", yesterday: "昨日", week: "過去 7 日間", month: "過去 30 日間" },
  pinned: "固定済み",
  pin: "先頭に固定",
  unpin: "固定を解除",
  move: "フォルダーに移動",
  moveTitle: (title) => `「${title}」を移動`,
  noFolder: "フォルダーなし",
  newFolder: "新しいフォルダー",
  folderName: "フォルダーの名前",
  moreFolder: (name) => `フォルダー「${name}」のその他の操作`,
  deleteFolder: "フォルダーを削除（チャットは保持）",
  deletedFolder: (name) => `フォルダー「${name}」を削除しました。チャットは保持されます。`,
  search: "チャットを検索",
  results: "検索結果",
};

/** A chat: its messages, and what can be done with them. */
export const chat: Words["chat"] = {
  pictureTitle: "画像",
  you: "自分",
  answer: "回答",
  tool: "ツール",
  beingWritten: (who) => `${who}、生成中`,
  messages: "メッセージ",
  toEnd: "末尾へ移動",
  answering: "モデルが回答中",
  anotherTab: "この回答は別のタブで生成中です。",
  waiting: "モデルを待機中",
  writing: "生成中",
  thinking: "思考中",
  thoughts: "思考の過程",
  rate: (tokens) => `${tokens} トークン/秒`,
  tokens: (count) => counted("ja", count, { other: "# トークン" }),
  wasCut: "収まりきらない古いメッセージは省かれました",
  inPage: "このページ内",
  inWebLlm: "このページ内（WebLLM）",
  stopped: "停止しました。",
  limit: "回答が長さの上限に達しました。",
  goOn: "続ける",
  goOnWith: "この回答を続ける",
  tryAgain: "再試行",
  getAnswer: "回答を生成",
  copy: "コピー",
  copyMarkdown: "Markdown でコピー",
  copied: "メッセージを Markdown でコピーしました。",
  systemPrompt: "システムプロンプト",
  attachedNames: (names) => `添付：${names}`,
  pictures: (count) => counted("ja", count, { other: "画像 # 枚" }),
  edit: "編集",
  readAloud: "読み上げる",
  stopReading: "読み上げを停止",
  again: "回答し直す",
  againWith: (model) => `${model} で回答し直す`,
  more: "その他",
  deleteFrom: (count) =>
    count === 1 ? "このメッセージを削除" : counted("ja", count, { other: "ここから # 件のメッセージを削除" }),
  deleted: (count) => counted("ja", count, { other: "# 件のメッセージを削除しました。" }),
  version: (at, all) => `バージョン ${at}/${all}`,
  versionBefore: "前のバージョン",
  versionAfter: "次のバージョン",
  attached: "添付した画像",
  calls: (name) => `${name} を呼び出し`,
  result: (name) => `${name} の結果`,
  giveResults: "結果を送信",
  yourMessage: "自分のメッセージ",
  theAnswer: "回答",
  changed: "メッセージを変更しました。",
  discarded: "変更を破棄しました。",
  askAgain: "新しいバージョンとして送信",
  elsewhere: "別のタブがこのチャットに回答中です。完了を待つか、そのタブで停止してください。",
  notSaved: (why) => `このチャットを保存できませんでした：${why}`,
  noRoom: "このページで使えるブラウザーの保存領域がありません。チャットをいくつかエクスポートして削除してください。",
  interrupted: "この回答が完了する前にページが閉じられました。",
  noEnd: "回答が理由の通知なしに終了しました。",
  lost: "サーバーに接続できません。受信済みの内容は保存されています。サーバーが復旧したら続けられます。",
  unreachable: "サーバーに接続できません。メッセージは保存されています。サーバーが復旧してからもう一度お試しください。",
};

/** モデルが求めるツールの呼び出し。 */
export const toolCalls: Words["toolCalls"] = {
  asks: (tool) => `モデルが ${tool} を呼び出そうとしています。`,
  wasBegun: "前回の呼び出しは中断されました。すでに実行された可能性があります。",
  decisions: { once: "1回だけ許可", always: "このチャットでは常に許可", no: "拒否", never: "このチャットでは常に拒否" },
  underWay: (tool) => `${tool} を呼び出し中`,
  stop: "この呼び出しを停止",
  failed: "失敗",
  result: "結果",
  noOutput: "（出力なし）",
  shortened: "先頭部分だけを表示しています。モデルには結果全体が渡されます。",
};

export const toolServers: Words["toolServers"] = {
  title: "ツールサーバー",
  hint: "モデルは、オンにしたサーバーのツールを呼び出せます。設定で無害とされたツールを除き、呼び出しのたびに確認します。",
  tools: (count) => counted("ja", count, { other: "ツール #個" }),
  always: (tools) => `確認せずに呼び出す：${tools}`,
  never: (tools) => `呼び出さない：${tools}`,
  askAgain: "再び確認する",
  missing: (server, why) => `${server} のツールを使えません：${why || "設定されていません。"}`,
};

/** Several models that answer one question. */
export const compare: Words["compare"] = {
  title: "回答を並べて比較",
  hint: (model, others) =>
    `各質問に同時に回答するモデルを ${counted("ja", others, { other: "# 個" })}まで選択できます。${model} はこのチャットのモデルです。`,
  also: (models) => `同時に回答：${models}`,
  off: "オフにする",
  goOn: "この回答で続ける",
  goOnWith: (model) => `${model} のこの回答で続ける`,
};

/** Texts that are saved for later. */
export const prompts: Words["prompts"] = {
  title: "保存したプロンプト",
  manage: "保存したプロンプトを編集",
  kinds: {
    message: {
      heading: "プロンプト",
      hint: "メッセージ欄に / とプロンプトの名前を入力すると、そのテキストが挿入されます。",
      add: "新しいプロンプト",
    },
    system: {
      heading: "保存したシステムプロンプト",
      hint: "新しいチャットを、このいずれかで始められます。",
      add: "新しいシステムプロンプト",
    },
  },
  text: "テキスト",
  saveSystem: "このシステムプロンプトを保存",
  choose: "保存したシステムプロンプトを選択",
  edit: (name) => `${name} を編集`,
  delete: (name) => `${name} を削除`,
  deleted: (name) => `プロンプト「${name}」を削除しました。`,
};

/** The field for messages. */
export const composer: Words["composer"] = {
  message: "メッセージ",
  placeholder: "メッセージを入力",
  send: "送信",
  stop: "停止",
  attach: "ファイルを添付",
  files: "ファイル",
  attachments: "添付ファイル",
  remove: (name) => `${name} を削除`,
  picture: "画像",
  removed: (name) => `${name} を削除しました。`,
  context: "コンテキストの使用量",
  contextHint: (tokens) => `このチャットはモデルのコンテキストを約 ${tokens} トークン使用しています。`,
  contextOf: (used, size) => `${used} / ${size} トークン`,
  contextUsed: (used) => `${used} トークン`,
  cannotSee: (model) => `${model} は画像を認識できません。`,
  cannotChat: (model) => `${model} は埋め込み用のモデルのため、チャットできません。`,
  gone: (model) => `${model} はサーバーにありません。`,
  use: (model) => `${model} を使用`,
  getSeeing: "画像を認識できるモデルを入手",
  getModel: "モデルを入手",
  removePictures: "画像を削除",
};

/** Files that cannot be attached. */
export const attachments: Words["attachments"] = {
  textTooLarge: (file, limit) => `${file} は大きすぎます。テキストファイルの上限は ${limit} です。`,
  pictureTooLarge: (file, limit) => `${file} は大きすぎます。画像の上限は ${limit} です。`,
  unknown: (file) => `${file} は画像でもテキストファイルでもありません。`,
  documentTooLarge: (file, limit) => `${file} は大きすぎます。文書は ${limit} までです。`,
  tookTooLong: (file) => `${file} の読み込みに 1 分以上かかりました。一部だけを添付してください。`,
  faults: {
    protected: (file) =>
      `${file} にはパスワードがあるか、古い Office の形式です。パスワードなしで保存し直してください。`,
    noText: (file) => `${file} にはテキストがありません。スキャンの場合は、ページを画像として添付してください。`,
    damaged: (file) => `${file} は壊れていて読み込めません。`,
    unpacked: (file) => `${file} は展開すると大きすぎます。`,
    unknown: (file) => `${file} は画像でもテキストでも、このページで読める文書でもありません。`,
  },
  reading: (file) => `${file} を読み込み中`,
  readingPage: (file, page) => `${file} の ${page} ページを読み込み中`,
  stopReading: (file) => `${file} の読み込みを中止`,
  parts: {
    pages: (count) => counted("ja", count, { other: "# ページ" }),
    slides: (count) => counted("ja", count, { other: "スライド # 枚" }),
    sheets: (count) => counted("ja", count, { other: "シート # 枚" }),
  },
  about: (tokens) => `約 ${tokens}`,
  firstPart: "先頭部分",
  tooLong: (tokens, model, context) =>
    `ファイルは ${tokens} トークンになります。${model} のコンテキストは ${context} トークンです。`,
  useFirst: "先頭部分を使う",
  shortened: (file) => `${file} を短くしました。`,
  unreadable: (file) => `このブラウザーは画像 ${file} を読み込めません。`,
};

/** A chat that has not begun. */
export const welcome: Words["welcome"] = {
  title: "何について話しましょうか？",
  private: "モデルは自分のマシンで動作します。チャットはこのブラウザーに残ります。",
  prompts: [
    { label: "物語を聞く", text: "灯台守についての短い物語を聞かせてください。" },
    { label: "ファイルを説明する", text: "このファイルについて説明してください。", wantsFile: true },
    { label: "JSON を書く", text: "本を表す JSON オブジェクトを書いてください。JSON だけで答えてください。" },
  ],
  demo: (size) => `これは ${size} のデモ用モデルです。`,
  getUseful: "実用的なモデルを入手 →",
  noModel: "このサーバーにはチャットできるモデルがありません。",
  getOne: "モデルを入手 →",
};

/** The menu of models. */
export const modelMenu: Words["modelMenu"] = {
  button: (model) => `モデル：${model}`,
  title: "モデルを選択",
  none: "モデルなし",
  gone: "削除済み",
  search: "モデルを検索",
  more: "ほかのモデルを入手…",
  loaded: "メモリに読み込み済み",
  sees: "画像を認識できる",
  calls: "ツールを呼び出せる",
  thinks: "先に思考できる",
  where: (place) => `実行場所：${place}`,
  places: { server: "サーバー", page: "このページ内", webllm: "このページ内（WebLLM）" },
  whyNot: {
    server: "このモデルは WebLLM でのみ動作します。",
    page: "このモデルの形式はページ内では動作しません。",
    webllm: "WebLLM で動作するのは、MLC でコンパイルされたモデルのみです。",
  },
};

/** Settings of a chat. */
export const options: Words["options"] = {
  title: "このチャットの設定",
  systemHint: "最初のメッセージの前にモデルへ与える指示",
  think: "思考",
  thinking: { auto: "モデルの既定", on: "オン", off: "オフ" },
  names: {
    temperature: "温度",
    top_p: "Top p",
    top_k: "Top k",
    min_p: "Min p",
    repeat_penalty: "繰り返しペナルティ",
    seed: "シード",
    num_predict: "回答の最大トークン数",
    num_ctx: "コンテキスト（トークン）",
  },
  modelsOwn: "既定",
  tools: "ツール（JSON）",
  notTools: 'ツールのリストではありません。[{"type": "function", …}] のような JSON を入力してください。',
};
