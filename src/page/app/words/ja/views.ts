/** Japanese: the gateway, the system, and the dialogs of the page. */
import type { Words } from "../en.ts";

export const gateway: Words["gateway"] = {
  parts: "ゲートウェイの各部",
  deliveries: "配信",
  mappings: "マッピング",
  approvals: "承認",
  findings: "検出事項",
  paused: "一時停止中",
  waiting: "待機中",
  running: "実行中",
  replies: "送信待ちの返信",
  messages: "送信待ちのメッセージ",
  off: {
    title: "ほかのシステムからモデルを起動する",
    text: "GitHub の issue が Slack の要約になり、失敗したビルドが説明になります。ゲートウェイは webhook を受け取ってモデルを実行し、その回答をチャットに送信します。",
    how: "ゲートウェイは無効です。次の内容を hearth.json5 に追加し、3 つの変数を設定して、サーバーを再起動してください：",
    copy: "設定をコピー",
    locked:
      "ゲートウェイは動作していますが、トークンが設定されていないため、この画面はロックされています。hearth.json5 に gateway.token を追加して、サーバーを再起動してください。",
    docs: "各設定については、Hearth の docs/webhooks.md に説明があります。",
  },
  token: "ゲートウェイのトークン",
  tokenHint: "hearth.json5 の gateway.token を入力してください。このタブを閉じるまで保持されます。",
  tokenRefused: "トークンが正しくありません。hearth.json5 の gateway.token を入力してください。",
  open: "開く",
};

export const pageSettings: Words["pageSettings"] = {
  title: "このページ",
  language: "言語",
  browserLanguage: "ブラウザーの言語",
  titles: "チャットのタイトルをモデルに付けさせる",
  titlesHint:
    "最初の回答の後、ほかの回答が生成されていないときに実行します。10 億パラメーター未満のモデルは使用しません。",
};

export const approvals: Words["approvals"] = {
  none: "承認待ちの呼び出しはありません。",
  allow: "1回だけ許可",
  refuse: "拒否",
  until: (time) => `${time} まで待機`,
  allowed: (tool) => `${tool} の呼び出しを許可しました。`,
  refused: (tool) => `${tool} の呼び出しを拒否しました。`,
};

export const deliveries: Words["deliveries"] = {
  state: "状態",
  any: "すべて",
  path: "パス",
  anyPath: "すべて",
  none: "配信はまだありません。",
  earlier: "以前の配信を表示",
  replayed: "再実行",
  title: "配信",
  replay: "再実行",
  replayDead: "すべて再実行",
  replayReplies: "すべての返信を再送信",
  deadCount: (count) => `${count} 件の実行が断念されました。古い順に再実行します。`,
  lostCount: (count) => `${count} 件の返信が失敗しました。モデルに問い合わせずに再送信します。`,
  replaysLeft: (count) => `残り：${count}`,
  replayedAll: (done, skipped) => `再実行：${done}${skipped > 0 ? `、スキップ：${skipped}` : ""}`,
  headers: "ヘッダー",
  body: "本文",
  bodyBase64: "本文（base64）",
  noBody: "hooks.queue.keepBodies がオフのため、本文は保持されていません。",
  received: "受信日時",
  about: "件名",
  mapping: "マッピング",
  noMapping: "なし",
  sender: "送信元",
  request: "リクエスト",
  wake: "ウェイク",
  turn: "エージェントのターン",
  reply: (state) => `返信：${state}`,
  fate: ({ state, lost }) => (lost === undefined ? state : `${state}、返信：${lost}`),
  prompt: "プロンプト",
};

export const setup: Words["setup"] = {
  noMappings: "マッピングはありません。webhook を受け取るのは /wake と /agent のみです。",
  tryIt: "試す",
  everyPath: "すべてのパス",
  repliesTo: (channel) => `${channel} に返信`,
  preset: (name) => `プリセット ${name}`,
  tryTitle: (mapping) => `${mapping} を試す`,
  tryAbout: "マッピングがペイロードをどう処理するかを表示します。保存も送信も行われません。",
  payload: "ペイロード（JSON）",
  headers: "ヘッダー（1 行に 1 つ、例：X-GitHub-Event: issues）",
  notHeader: (line) => `「${line}」はヘッダーではありません。NAME: VALUE の形式で入力してください`,
  notJson: "ペイロードが有効な JSON ではありません。",
  try: "試す",
  noFindings: "監査で問題は見つかりませんでした。",
};

export const system: Words["system"] = {
  metrics: "メトリクス",
  machine: "このマシン",
  facts: {
    version: "バージョン",
    backend: "バックエンド",
    device: "デバイス",
    memory: "メモリ",
    disk: "ディスク",
    running: "生成中の回答",
    waiting: "待機中のリクエスト",
    load: "起動後に読み込んだモデル",
    crash: "起動後のクラッシュ",
  },
  memory: (free, total) => `${total} 中 ${free} 空き`,
  free: (size) => `${size} 空き`,
  settings: "サーバーの設定",
  settingsFrom: "hearth.json5、環境変数、コマンドラインのフラグで設定します。サーバーは起動時に読み取ります。",
  names: {
    host: "アドレス",
    backend: "バックエンド",
    num_parallel: "モデルごとの同時回答数",
    max_loaded_models: "メモリに置くモデル数",
    max_queue: "待機できるリクエスト数",
    keep_alive: "モデルをメモリに保持する時間",
    context_length: "コンテキスト（トークン）",
    gpu_memory: "GPU メモリ",
    api_keys: "API キー",
    debug: "デバッグログ",
  },
  auto: "自動",
  forever: "無期限",
  on: "オン",
  off: "オフ",
  none: "なし",
  key: "このタブには API キーがあります",
  forgetKey: "キーを破棄",
  forgotKey: "このタブの API キーを破棄しました。",
  requests: "最近のリクエスト",
  requestTable: "最近のリクエストの表",
  noRequests: "このページからのもの以外に、リクエストはまだありません。",
  columns: {
    time: "時刻",
    request: "リクエスト",
    status: "ステータス",
    took: "所要時間",
    model: "モデル",
    tokens: "トークン",
    key: "キー",
  },
};

export const keyDialog: Words["keyDialog"] = {
  title: "このサーバーには API キーが必要です",
  refused: "キーが正しくありません。有効なキーをこのサーバーの管理者に確認してください。",
  about: "このサーバーには API キーが設定されています（HEARTH_API_KEYS）。キーはこのタブを閉じるまで保持されます。",
  key: "API キー",
  enter: "キーを入力",
  use: "このキーを使用",
};

export const keyboard: Words["keyboard"] = {
  title: "キーボード",
  mac: "Mac では、Ctrl の代わりに ⌘ を使用します。",
  newChat: "新しいチャット",
  search: "チャットを検索",
  write: "メッセージを入力",
  send: "送信",
  newLine: "改行",
  stop: "回答を停止、または開いているものを閉じる",
  editLast: "未入力のときに、自分の最後のメッセージを編集",
  settings: "このチャットの設定",
  undo: "削除を元に戻す（10 秒以内）",
  list: "この一覧",
};

export const help: Words["help"] = {
  title: "ヘルプ",
  topics: [
    {
      title: "モデルを入手する",
      text: "「モデル」を開き、名前（例：llama3.2:1b）を入力します。ページを閉じるとダウンロードは停止しますが、後で再開できます。",
    },
    {
      title: "チャットする",
      text: "ファイルはクリップのボタン、ドラッグ＆ドロップ、貼り付けで添付できます。メッセージを編集すると新しいバージョンが作られ、古いものも残ります。システムプロンプトとサンプリングは、右上の設定で変更できます。",
    },
    {
      title: "データについて",
      text: "チャットはこのブラウザーに残ります。ブラウザーのデータを消去する前に、「チャット」の横のメニューからエクスポートしてください。",
    },
    {
      title: "ほかのプログラム",
      text: "Hearth は Ollama、OpenAI、Anthropic の API に対応しています。クライアントにこのページのアドレスを指定してください。",
    },
    {
      title: "コマンドライン",
      text: "hearth -h ですべてのコマンドを表示できます。各設定については、Hearth の docs フォルダーに説明があります。",
    },
  ],
  api: "API リファレンス",
};

export const markdown: Words["markdown"] = {
  copied: "コピーしました",
  copyCode: "コードをコピー",
  code: "コード",
  codeIn: (language) => `${language} のコード`,
  table: "表",
};
