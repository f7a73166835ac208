/**
 * Open WebUI in a headless browser against this server, once by Ollama's API and once by OpenAI's: the account of a
 * first run, the list of models, streamed chats with trained weights, Regenerate, its own requests (titles, tags, next
 * questions), documents, pictures, Stop, and the administration of models. It connects to no other server.
 *
 *   python3.11 -m venv VENV && VENV/bin/pip install open-webui   (some gigabytes)
 *   bun bench/real/open-webui.ts VENV/bin/open-webui [ollama openai]
 *
 * Prints a line for each check. HEARTH_TEST_ARTEFACTS names a folder for screenshots of failures.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Locator, Page } from "playwright-core";
import { messageOf } from "../../src/base/errors.ts";
import { writeGguf } from "../../src/engine/formats/files/write.ts";
import { runHearth, startHearth, type Hearth } from "../../test/e2e/hearth.ts";
import { mediaCounts } from "../../test/e2e/media-counts.ts";
import { makeProjector, makeVisionText } from "../../test/engine/vision/vision-model.ts";
import { startFront } from "../../test/library/registry/front.ts";
import { publish } from "../../test/library/registry/place.ts";
import { startBrowser } from "../../test/page/page.ts";
import { fetchReal } from "./fetch.ts";

const APIS = ["ollama", "openai"] as const;
type Api = (typeof APIS)[number];

const START_MS = 600_000;
const ANSWER_MS = 240_000;
/** Time limit of one step of the page. */
const WAIT_MS = 120_000;
/** Interval between checks of a state: other processes share the cores. */
const LOOK_MS = 250;
const TEMPLATE = `{{ range .Messages }}{{ if eq .Role "user" }}Question: {{ .Content }}
Answer:{{ else if eq .Role "assistant" }} {{ .Content }}
{{ else }}{{ .Content }}
{{ end }}{{ end }}`;
const SECRET = "The word that opens the cellar is marmalade.";
/** A port without a server. */
const NOWHERE = "127.0.0.1:9/none/none";
/** A model file of a few kilobytes, for transfers. */
const SMALL = "text.gguf";

const PROGRAM = resolve(process.argv[2] ?? "");
const names = process.argv.slice(3);
const apis = APIS.filter((name) => names.length === 0 || names.includes(name));
if (process.argv.length < 3 || apis.length === 0)
  throw new Error(`expected the program open-webui, and some of ${APIS.join(", ")}`);
let failed = 0;

interface Visit {
  readonly api: Api;
  readonly hearth: Hearth;
  readonly page: Page;
  readonly url: string;
}

async function visit(api: Api): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "hearth-webui-"));
  const hearth = await startHearth();
  const url = `http://127.0.0.1:${freePort()}`;
  const log = Bun.file(join(home, "webui.log"));
  const webui = Bun.spawn([PROGRAM, "serve", "--host", "127.0.0.1", "--port", new URL(url).port], {
    cwd: home,
    env: environment(api, hearth.url, home),
    stdio: ["ignore", log, log],
  });
  const browser = await startBrowser();
  try {
    await installModels(hearth);
    await until(() => fetch(`${url}/health`).then(({ ok }) => ok), START_MS);
    const context = await browser.newContext({ viewport: { width: 1300, height: 900 }, locale: "en-US" });
    context.setDefaultTimeout(WAIT_MS);
    const page = await context.newPage();
    const all = { api, hearth, page, url };
    for (const part of PARTS) await attempt(all, part);
  } finally {
    await browser.close();
    webui.kill();
    await webui.exited;
    await hearth.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

/** Its settings: only this server, and no downloads. */
function environment(api: Api, url: string, home: string): Record<string, string> {
  const isOllama = api === "ollama";
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    DATA_DIR: home,
    WEBUI_SECRET_KEY: "a key of at least 32 characters in all",
    ENABLE_OLLAMA_API: `${isOllama}`,
    OLLAMA_BASE_URLS: url,
    ENABLE_OPENAI_API: `${!isOllama}`,
    OPENAI_API_BASE_URLS: `${url}/v1`,
    OPENAI_API_KEYS: "none",
    RAG_EMBEDDING_ENGINE: api,
    RAG_OLLAMA_BASE_URL: url,
    RAG_OPENAI_API_BASE_URL: `${url}/v1`,
    RAG_OPENAI_API_KEY: "none",
    RAG_EMBEDDING_MODEL: "minilm",
    TASK_MODEL: "hearth:latest",
    TASK_MODEL_EXTERNAL: "hearth:latest",
    DEFAULT_MODEL_PARAMS: JSON.stringify({ temperature: 0, max_tokens: 120 }),
    OFFLINE_MODE: "true",
    HF_HUB_OFFLINE: "1",
    ENABLE_VERSION_UPDATE_CHECK: "false",
    ANONYMIZED_TELEMETRY: "false",
  };
}

/** `sees` has random weights: a small text model and its projector. */
async function installModels({ home, url }: Hearth): Promise<void> {
  const [small, projector] = [join(home, SMALL), join(home, "projector.gguf")];
  await writeGguf(small, makeVisionText());
  await writeGguf(projector, makeProjector());
  const gemma = `FROM ${await fetchReal("gemma")}\nTEMPLATE """${TEMPLATE}"""\nPARAMETER stop "Question:"\n`;
  const minilm = `FROM ${await fetchReal("minilm")}\n`;
  const sees = `FROM ${small}\nFROM ${projector}\n`;
  for (const [name, text] of Object.entries({ gemma, minilm, sees })) {
    const file = join(home, "Modelfile");
    await Bun.write(file, text);
    const { code, stderr } = await runHearth(["create", name, "-f", file], { home, env: { HEARTH_HOST: url } });
    if (code !== 0) throw new Error(stderr);
  }
}

async function attempt(all: Visit, part: (visit: Visit) => Promise<void>): Promise<void> {
  try {
    await part(all);
  } catch (error) {
    await check(all, `${part.name} ends`, false, [messageOf(error), requests(all).at(-1)]);
  }
}

async function check({ api, page }: Visit, what: string, isTrue: boolean, seen: unknown = ""): Promise<void> {
  console.log(`${isTrue ? "ok " : "NOT"} ${api}: ${what}${isTrue ? "" : ` ${JSON.stringify(seen).slice(0, 400)}`}`);
  if (isTrue) return;
  failed++;
  const folder = process.env["HEARTH_TEST_ARTEFACTS"];
  if (folder) await page.screenshot({ path: join(folder, `webui-${api}-${failed}.png`) });
}

/** Waits for a state, and returns true if it comes. */
async function until(isThere: () => Promise<boolean>, waitMs = ANSWER_MS): Promise<boolean> {
  for (const end = Date.now() + waitMs; Date.now() < end; await Bun.sleep(LOOK_MS)) {
    if (await isThere().catch(() => false)) return true;
  }
  return false;
}

function freePort(): number {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  void server.stop(true);
  return port!;
}

interface Entry {
  readonly path: string;
  readonly status: number;
  readonly model?: string;
  readonly error?: string;
  readonly done_reason?: string;
}
/** Requests in the server's log. */
const requests = ({ hearth }: Visit): Entry[] =>
  hearth
    .log()
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Entry)
    .filter(({ path }) => path !== undefined);

/** The model has no tools, and Open WebUI sends its own ones unless a setting says otherwise. */
async function refuseTools(all: Visit): Promise<void> {
  const { page } = all;
  await newChat(all, "gemma");
  await say(all, "What is the capital of France?");
  const isSaid = await until(async () => (await page.locator("main").innerText()).includes("does not support tools"));
  await check(all, "a model without tools says so", isSaid, await answers(page).allInnerTexts());
  for (const id of ["gemma:latest", "sees:latest"]) {
    const model = { id, name: id, params: { function_calling: "legacy" }, meta: {}, base_model_id: null };
    const status = await page.evaluate(async (body) => {
      const headers = { authorization: `Bearer ${localStorage["token"]}`, "content-type": "application/json" };
      return (await fetch("/api/v1/models/create", { method: "POST", headers, body })).status;
    }, JSON.stringify(model));
    await check(all, `${id} is set to call tools the old way`, status === 200, status);
  }
}

async function signUp(all: Visit): Promise<void> {
  const { page, url } = all;
  await page.goto(url);
  await page.getByText("Get started").first().click();
  await page.locator("#name").fill("Anna");
  await page.locator("#email").fill("anna@example.com");
  await page.locator("#password").fill("A-word-of-16-chars");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /Okay/ }).click();
  await check(all, "the first account is there", await page.locator("#chat-input").isVisible());
}

async function chooseModel({ page }: Visit, name: string): Promise<void> {
  await page.locator("#model-selector-model-button").click();
  await page.getByRole("option", { name }).first().click();
}

async function listModels(all: Visit): Promise<void> {
  const { page } = all;
  await page.locator("#model-selector-model-button").click();
  const shown = await page.getByRole("option").allInnerTexts();
  const names = ["gemma", "hearth", "minilm", "sees"].filter((name) => shown.some((text) => text.startsWith(name)));
  await check(all, "all models are listed, once each", names.length === 4 && shown.length === 4, shown);
  if (all.api === "ollama") await check(all, "their sizes are shown", shown.join().includes("268.1M"), shown);
  await page.keyboard.press("Escape");
}

/** Sends a message in a new chat, or in the open one. */
async function say({ page }: Visit, text: string): Promise<void> {
  await page.locator("#chat-input").click();
  await page.keyboard.insertText(text);
  await page.keyboard.press("Enter");
}

const answers = (page: Page): Locator => page.locator(".chat-assistant");
const stopButton = (page: Page): Locator => page.getByRole("button", { name: "Stop", exact: true });

/** Waits for a number of complete answers; returns true if they come. Titles and tags may still be generated then. */
async function isDone({ page }: Visit, count: number): Promise<boolean> {
  return until(async () => (await page.locator("button[aria-label='Good Response']").count()) >= count);
}

async function newChat(all: Visit, model: string): Promise<void> {
  await all.page.goto(all.url);
  await chooseModel(all, model);
}

async function chat(all: Visit): Promise<void> {
  const { page } = all;
  await newChat(all, "gemma");
  await say(all, "What is the capital of France?");
  await check(all, "a question is answered", await isDone(all, 1), await answers(page).allInnerTexts());
  await say(all, "And of Italy?");
  await check(all, "a second turn is answered", await isDone(all, 2), await answers(page).allInnerTexts());
  const [first, second] = await answers(page).allInnerTexts();
  const isRight = first!.includes("Paris") && second!.includes("Rome");
  await check(all, "the second turn knows the first", isRight, [first, second]);
  await page.getByRole("button", { name: "Regenerate" }).last().click();
  await page.getByText("Try Again").click();
  const isOther = await until(async () => (await page.locator("main").innerText()).includes("2/2"));
  await check(
    all,
    "Regenerate adds another answer",
    isOther && (await isDone(all, 2)),
    await answers(page).allInnerTexts(),
  );
  const isNamed = await until(async () => !/^(New Chat|Open WebUI)/.test(await page.title()));
  const isAsked = await until(async () =>
    requests(all).some(({ model, status }) => model === "hearth:latest" && status === 200),
  );
  await check(all, "the chat gets a title", isNamed && isAsked, await page.title());
  const isExpected = ({ path, error }: Entry): boolean =>
    path.startsWith("/api/blobs") || error?.includes("support tools") === true;
  const failures = requests(all).filter((each) => each.status >= 400 && !isExpected(each));
  await check(all, "no request failed", failures.length === 0, failures);
}

async function stop(all: Visit): Promise<void> {
  const { page } = all;
  await newChat(all, "gemma");
  await say(all, "Tell me a very long story of a fisherman.");
  const lengths = new Set<number>();
  const isStreamed = await until(async () => lengths.add((await answers(page).first().innerText()).length).size > 3);
  await check(all, "an answer is streamed", isStreamed, [...lengths]);
  await check(all, "a request runs", await until(async () => (await running(all)) > 0));
  await stopButton(page).click();
  const isIdle = await until(async () => !(await stopButton(page).isVisible()));
  await check(all, "Stop ends an answer", isIdle);
  const isFree = await until(async () => (await running(all)) === 0);
  await check(all, "the server stops too", isFree, requests(all).slice(-3));
}

/** Number of requests that the server runs. */
async function running({ hearth }: Visit): Promise<number> {
  const metrics = await (await fetch(`${hearth.url}/metrics`)).text();
  return Number(/^hearth_requests_running (\d+)/m.exec(metrics)![1]);
}

async function document(all: Visit): Promise<void> {
  const { page } = all;
  await newChat(all, "gemma");
  const buffer = Buffer.from(`${"The house has a garden and a gate.\n".repeat(40)}${SECRET}\n`);
  await page.locator("input[type=file]").first().setInputFiles({ name: "house.txt", mimeType: "text/plain", buffer });
  const isRead = await until(async () => requests(all).some(({ path }) => path.includes("embed")), WAIT_MS);
  await check(all, "a document becomes vectors here", isRead, requests(all).slice(-3));
  await say(all, "Which word opens the cellar?");
  await check(all, "a question on it is answered", await isDone(all, 1), await answers(page).allInnerTexts());
}

/** Its own tools are sent with the question: a prompt of thousands of tokens. */
async function tools(all: Visit): Promise<void> {
  await newChat(all, "hearth");
  await say(all, "Hello! Who are you?");
  const isAnswered = await isDone(all, 1);
  const { status, error } = requests(all).findLast(({ path }) => path.includes("chat")) ?? {};
  await check(all, "a question with tools is answered", isAnswered && status === 200, [status, error]);
}

async function picture(all: Visit): Promise<void> {
  const { hearth, page } = all;
  const buffer = await page.screenshot();
  const ask = async (model: string): Promise<void> => {
    await newChat(all, model);
    await page.locator("input[type=file]").first().setInputFiles({ name: "page.png", mimeType: "image/png", buffer });
    await page.locator("img[alt='input'], #chat-container form img").first().waitFor();
    await say(all, "What is on this picture?");
  };
  await ask("gemma");
  const isSaid = await until(async () =>
    (await answers(page).allInnerTexts()).join().includes("does not support images"),
  );
  await check(all, "a model without eyes says so", isSaid, await answers(page).allInnerTexts());
  const counted = mediaCounts(() => hearth.url);
  await counted();
  await ask("sees");
  const isAnswered = await isDone(all, 1);
  const { status, error } = requests(all).findLast(({ model }) => model === "sees:latest") ?? {};
  await check(all, "a picture is answered", isAnswered && status === 200, [status, error]);
  const counts = await counted();
  await check(all, "the picture is read once", counts === "1 encoded, 0 reused", counts);
}

const tags = async ({ hearth }: Visit): Promise<string> => (await fetch(`${hearth.url}/api/tags`)).text();

async function eject(all: Visit): Promise<void> {
  const { api, hearth, page } = all;
  if (api !== "ollama") return;
  const loaded = async (): Promise<string> => (await fetch(`${hearth.url}/api/ps`)).text();
  await newChat(all, "gemma");
  await say(all, "Which animal barks?");
  await isDone(all, 1);
  await page.locator("#model-selector-model-button").click();
  const option = page.getByRole("option", { name: "gemma" }).first();
  await option.hover();
  await option.getByRole("button", { name: "Eject model" }).click();
  const isFree = await until(async () => !(await loaded()).includes('"gemma:latest"'));
  await check(all, "Eject unloads a model", isFree, requests(all).slice(-3));
  await page.keyboard.press("Escape");
}

/** Pulls, creates, uploads and deletes, as Ollama's administration does. */
async function manage(all: Visit): Promise<void> {
  const { api, hearth, page, url } = all;
  if (api !== "ollama") return;
  await page.goto(`${url}/admin/settings/models`);
  await page.getByRole("button", { name: "Actions", exact: true }).first().click();
  await page
    .getByText(/^Manage( Models)?$/)
    .first()
    .click();
  const toasts = async (): Promise<string> => (await page.locator("[data-sonner-toast]").allInnerTexts()).join();
  const tag = page.getByPlaceholder(/Enter model tag/);
  const besides = (field: Locator): Locator => field.locator("xpath=../..").getByRole("button").first();
  await tag.first().fill(NOWHERE);
  await besides(tag.first()).click();
  const isTold = await until(async () => (await toasts()).includes("127.0.0.1:9"));
  await check(all, "a pull that fails says why", isTold, await toasts());
  const front = startFront();
  const name = publish(front, "small", [new Uint8Array(readFileSync(join(hearth.home, SMALL)))]);
  await tag.first().fill(name);
  await besides(tag.first()).click();
  const isPulled = await until(async () => (await tags(all)).includes("library/small"));
  await check(all, "a model is pulled", isPulled, await toasts());
  await front.stop();
  await tag.last().fill("kind");
  await page.getByPlaceholder(/my-modelfile", "from"/).fill('{"from": "gemma:latest", "system": "Be kind."}');
  await besides(tag.last()).click();
  await check(all, "a model is created", await until(async () => (await tags(all)).includes("kind")), await toasts());
  await page.getByText("Show", { exact: true }).last().click();
  await page.locator("#model-upload-input").setInputFiles(join(hearth.home, SMALL));
  await page.locator("form:has(#model-upload-input) button[type='submit']").click();
  await check(all, "a file is uploaded", await until(async () => (await tags(all)).includes('"text:')), await toasts());
  await page.locator("select:has(option[value='minilm:latest'])").last().selectOption("minilm:latest");
  await page.getByRole("button", { name: "Delete Model" }).click();
  await page.getByRole("button", { name: "Confirm" }).click();
  await check(all, "a model is deleted", await until(async () => !(await tags(all)).includes("minilm")));
}

const PARTS = [signUp, listModels, refuseTools, chat, stop, document, picture, tools, eject, manage];
for (const api of apis) await visit(api);
process.exit(failed === 0 ? 0 : 1);
