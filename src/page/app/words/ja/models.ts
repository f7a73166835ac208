/** Japanese: the models of the server, and of this page. */
import { counted } from "../count.ts";
import type { Words } from "../en.ts";
import { descriptions } from "./catalogue.ts";

export const models: Words["models"] = {
  pullLabel: "ダウンロードするモデルの名前",
  pullHint: "モデルをダウンロード：llama3.2:1b、hf.co/owner/model-GGUF:Q4_K_M",
  pull: "ダウンロード",
  list: "サーバー上のモデル",
  none: "モデルはまだありません。名前を指定してダウンロードしてください（例：llama3.2:1b）。",
  chat: "チャット",
  more: (model) => `${model} のその他の操作`,
  show: "詳細",
  load: "今すぐ読み込む",
  unload: "メモリから解放",
  update: "更新",
  createFrom: "このモデルから新規作成",
  copyTitle: (model) => `${model} をコピー`,
  copyName: "コピーの名前",
  deleted: (model, size) => `${model} を削除しました（${size}）。`,
  embeds: "埋め込みを生成",
  inMemory: (size) => `メモリ使用量：${size}`,
  onCpu: "CPU 上",
  onGpu: (percent) => `${percent}% が GPU 上`,
  context: (tokens) => `コンテキスト ${tokens} トークン`,
  leaves: (when) => `解放：${when}`,
  stays: "読み込んだまま保持",
};

export const catalogue: Words["catalogue"] = {
  title: "カタログ",
  describe: (name, english) => descriptions[name] ?? english,
  purpose: "用途",
  all: "すべて",
  purposes: { chat: "チャット", reasoning: "推論", code: "コード", vision: "画像", embedding: "埋め込み" },
  installed: "インストール済み",
  chatWith: (model) => `${model} とチャット`,
  download: (model) => `${model} をダウンロード`,
  pausing: (model) => `${model} のダウンロードを一時停止`,
  fits: (free) => `実行可能：メモリの空きは ${free} です。`,
  tight: (reason) => `余裕なし：${reason}。`,
  tooLarge: (reason) => `実行不可：${reason}。`,
  updated: (month) => `${month}時点。サイズは概算です。ほかのモデルは、上の欄に名前を入力してください。`,
  suggested: "おすすめのモデル",
};

export const jobs: Words["jobs"] = {
  title: "ダウンロード",
  pause: "一時停止",
  resume: "再開",
  forget: "削除",
  forgot: (model) => `${model} のダウンロードを削除しました。`,
  withoutTls: "TLS なしでダウンロード",
  progress: (model) => `${model} の進行状況`,
  paused: "一時停止中。ダウンロード済みの部分はサーバーに 1 週間保持されます。",
  stopped: "停止しました。",
  checking: "ファイルを確認中",
  uploading: "アップロード中",
  waiting: "待機中",
  downloading: "ダウンロード中",
  downloaded: "ダウンロードしました。",
  created: "作成しました。",
  amount: (done, total) => `${done} / ${total}`,
  rate: (size) => `${size}/秒`,
  left: (time) => `残り ${time}`,
};

export const modelFiles: Words["modelFiles"] = {
  title: "ファイルからモデルを追加",
  add: "ファイルを追加",
  choose: "モデルのファイル",
  action: "追加",
  replaces: (model) => `モデル ${model} はすでに存在します。置き換えられます。`,
  imagePart: "画像用",
  busy: (model) => `${model} はすでにダウンロード中または作成中です。`,
  empty: (file) => `${file} は空です。`,
  notGguf: (file) =>
    `${file} は GGUF ファイルではありません。名前が変更されたか、ダウンロードが完了していない可能性があります。`,
  unreadable: (file) => `ブラウザーが ${file} を読み取れません。移動または変更されています。`,
  missing: (count, files) =>
    `${counted("ja", count, { other: "モデルのファイルが # 個足りません：" })}${files}。すべてまとめて選択してください。`,
  several: "複数のモデルのファイルが含まれています。モデルは 1 つずつ追加してください。",
  onlyImages:
    "このファイルは、モデルのうち画像を読み取る部分だけです。モデルの GGUF ファイルも一緒に追加してください。",
  drop: "ファイルをドロップすると添付されます。GGUF ファイルはモデルになります。",
};

export const create: Words["create"] = {
  title: "モデルを作成",
  modelfile: "Modelfile",
  quantize: "量子化",
  asIs: "しない",
};

export const show: Words["show"] = {
  reading: "モデルを読み取り中",
  parameters: "パラメーター",
  template: "テンプレート",
  license: "ライセンス",
  copy: (part) => `コピー：${part}`,
  facts: {
    architecture: "アーキテクチャ",
    parameter_size: "パラメーター数",
    quantization_level: "量子化",
    context_length: "コンテキスト（トークン）",
    embedding_length: "埋め込みの次元数",
    block_count: "ブロック数",
    "attention.head_count": "アテンションヘッド数",
    vocab_size: "語彙数",
    expert_count: "エキスパート数",
  },
};

export const inPage: Words["inPage"] = {
  title: "このページ内のモデル",
  insecure: "このページ内でモデルを実行できるのは、HTTPS または localhost の場合のみです。",
  about:
    "チャットのモデルは、サーバーの代わりにこのページ内で実行できます。モデルは一度だけダウンロードされ、このブラウザーに保持されます。MLC でコンパイルされたモデルは、ここでのみ WebLLM で動作します。WebLLM には WebGPU が必要です。",
  runsOn: "実行方法",
  backends: {
    auto: "利用可能な最速の方法",
    webgpu: "グラフィックカード（WebGPU）",
    wasm: "プロセッサー（WebAssembly）",
    cpu: "参照実装（低速）",
  },
  look: "キャッシュされたモデルを表示",
  nothing: "キャッシュされたモデルはありません。",
  used: (usage, quota) => `${quota} 中 ${usage} を使用`,
  weights: "モデルの重み",
  webllm: "WebLLM 用のモデル",
  partOf: (what) => `一部：${what}`,
  onWebLlm: "WebLLM で動作中",
  on: (size, backend) => `${size}（${backend}）`,
  context: (tokens) => counted("ja", tokens, { other: "コンテキスト # トークン" }),
};

export const engine: Words["engine"] = {
  insecure:
    "このページ内でモデルを実行できるのは、HTTPS または localhost の場合のみです。サーバーでモデルを実行してください。",
  starting: "このページ内でエンジンを起動中",
  startingWebLlm: "このページ内で WebLLM を起動中",
  otherChat: "別のチャットの回答を待機中",
  noWebGpu:
    "このブラウザーでは WebGPU を使用できないため、モデルはプロセッサーで動作します。サーバーのほうが高速です。",
  loading: "モデルを読み込み中",
  fetching: (done, total) => `モデルをこのページにダウンロード中：${done} / ${total}`,
  busy: "別のタブがこのモデルをダウンロード中です。完了を待っています。",
  notKept: (why) => `ページにモデルを保持できないため（${why}）、毎回サーバーから読み取ります。`,
  reading: "サーバーからモデルを読み取り中",
  advice: {
    runner:
      "ページのメモリからモデルが失われました。「続ける」または「再試行」で読み込み直してください。再び失敗する場合は、プロセッサー（「モデル」の「このページ内のモデル」）またはサーバーで実行してください。",
    upstream:
      "ダウンロード済みの部分はページに保持されています。サーバーが復旧してから再試行すると、残りを取得します。",
    too_large:
      "より小さいモデルかコンテキストを選ぶか、プロセッサー（「モデル」の「このページ内のモデル」）またはサーバーで実行してください。",
  },
  noPictures: "ここでは WebLLM に画像を渡せません。画像を認識できる GGUF モデルを選択してください。",
  onlyMlc:
    "WebLLM で動作するのは、MLC でコンパイルされたモデルのみです。このモデルはサーバーまたはこのページ内で実行してください。",
  cannotLoad: (why) => `WebLLM がモデルを読み込めません：${why}`,
};
