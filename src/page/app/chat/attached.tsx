/** The attachments of the message being written: adds, reads, counts, shortens and removes them. */
import { signal, useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { bytesText, countText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import { reasonOf } from "../base/reason.ts";
import { shortName } from "../models/models.ts";
import { attach, type AttachedFile, type Unsent } from "./attachments.ts";
import { PictureView } from "./picture.tsx";
import type { Chat, Place } from "./tree.ts";
import { IconButton, SmallButton } from "../base/controls.tsx";

/** A document being read. */
interface Reading {
  readonly name: string;
  /** 0: no page read yet, or pages are not counted. */
  readonly pages: number;
  readonly stop: () => void;
}

export interface Attached extends Unsent {
  readonly reading: Signal<readonly Reading[]>;
  readonly take: (list: Iterable<File>) => Promise<void>;
}

/** @param draft the message that they belong to; they stay while another chat or view is shown */
export function useAttached(draft: string): Attached {
  const { notices, unsent } = useApp();
  const words = useWords();
  const kept: Unsent = unsent.get(draft) ?? { pictures: signal([]), files: signal([]) };
  unsent.set(draft, kept);
  const { pictures, files } = kept;
  const reading = useSignal<readonly Reading[]>([]);
  useEffect(() => () => reading.peek().forEach(({ stop }) => stop()), []);
  const takeOne = async (file: File): Promise<void> => {
    const stopping = new AbortController();
    const { signal } = stopping;
    let mine: Reading = { name: file.name, pages: 0, stop: () => stopping.abort() };
    reading.value = [...reading.value, mine];
    const onProgress = (pages: number): void => {
      const next = { ...mine, pages };
      reading.value = reading.value.map((each) => (each === mine ? next : each));
      mine = next;
    };
    try {
      const attached = await attach(file, { words: words.attachments, signal, onProgress });
      if (signal.aborted) return;
      if ("picture" in attached) pictures.value = [...pictures.value, attached.picture];
      else files.value = [...files.value, attached.file];
    } catch (error) {
      if (!signal.aborted) notices.say(reasonOf(words, error));
    } finally {
      reading.value = reading.value.filter((each) => each !== mine);
    }
  };
  const take = async (list: Iterable<File>): Promise<void> => {
    for (const file of list) await takeOne(file);
  };
  return { pictures, files, reading, take };
}

interface AttachmentsProps {
  readonly attached: Attached;
  readonly model: string;
  readonly place: Place;
  readonly options: Chat["options"];
}

export function Attachments({ attached, ...where }: AttachmentsProps) {
  const { pictures, files, reading } = attached;
  const { notices } = useApp();
  const { composer: words, attachments: texts } = useWords();
  const tokens = useTokens(files.value, where);
  if (pictures.value.length + files.value.length + reading.value.length === 0) return null;
  const remove = <T,>(list: Signal<readonly T[]>, item: T, name: string): void => {
    list.value = list.value.filter((each) => each !== item);
    notices.offerUndo({ text: words.removed(name), undo: () => (list.value = [...list.value, item]) });
  };
  return (
    <>
      <ul class="attachments" aria-label={words.attachments}>
        {pictures.value.map((picture) => (
          <li>
            <PictureView picture={picture} />
            <RemoveButton
              label={words.remove(words.picture)}
              onClick={() => remove(pictures, picture, words.picture)}
            />
          </li>
        ))}
        {files.value.map((file) => (
          <li class="chip">
            <Icon name="file" size={16} />
            <span>{file.name}</span>
            <FileFacts file={file} tokens={tokens?.get(file)} />
            <RemoveButton label={words.remove(file.name)} onClick={() => remove(files, file, file.name)} />
          </li>
        ))}
        {reading.value.map(({ name, pages, stop }) => (
          <li class="chip" role="status">
            <span class="pulse" />
            <span>{pages > 0 ? texts.readingPage(name, countText(pages)) : texts.reading(name)}</span>
            <RemoveButton label={texts.stopReading(name)} onClick={stop} />
          </li>
        ))}
      </ul>
      {tokens && <TooLong files={files} tokens={tokens} {...where} />}
    </>
  );
}

/** Its size, its pages, and its length in tokens. */
function FileFacts({ file, tokens }: { file: AttachedFile; tokens: Count | undefined }) {
  const { attachments: texts, chat } = useWords();
  const count = tokens && chat.tokens(tokens.count);
  const facts = [
    bytesText(file.bytes),
    file.parts && texts.parts[file.parts.kind](file.parts.count),
    file.isCut && texts.firstPart,
    count && (tokens.isExact ? count : texts.about(count)),
  ];
  return <small class="quiet">{facts.filter(Boolean).join(" · ")}</small>;
}

interface Count {
  readonly count: number;
  readonly isExact: boolean;
}

type Counts = ReadonlyMap<AttachedFile, Count>;
type Where = Omit<AttachmentsProps, "attached">;

/** Share of the context that files may take: the question and the answer need room, too. */
const FILES_SHARE = 0.75;
/** Longer texts are counted up to here, and the rest is estimated: a model serves no other request while it counts. */
const COUNTED_CHARS_MAX = 200_000;
/** Estimate for most languages, if the model is not asked. */
const CHARS_PER_TOKEN = 4;

/** Tokens of each file: counted by the server for its models, estimated for other models. */
function useTokens(files: readonly AttachedFile[], { model, place, options }: Where): Counts | undefined {
  const { api, models } = useApp();
  const counts = useSignal<Counts>(new Map());
  useEffect(() => {
    if (files.length === 0) return undefined;
    const stopping = new AbortController();
    const countOf = async (file: AttachedFile): Promise<Count> => {
      const estimate = { count: Math.ceil(file.text.length / CHARS_PER_TOKEN), isExact: false };
      if (place !== "server" || model === "") return estimate;
      const content = file.text.slice(0, COUNTED_CHARS_MAX);
      const body = { model, content, options };
      const { signal } = stopping;
      return api.json<{ tokens: number[] }>("/api/tokenize", { body, signal }).then(
        ({ tokens }) => ({
          count: Math.ceil((tokens.length * file.text.length) / Math.max(1, content.length)),
          isExact: content.length === file.text.length,
        }),
        () => estimate,
      );
    };
    const countAll = async (): Promise<void> => {
      const found = await Promise.all(files.map(async (file) => [file, await countOf(file)] as const));
      await models.refreshLoaded().catch(() => {});
      if (!stopping.signal.aborted) counts.value = new Map(found);
    };
    void countAll();
    return () => stopping.abort();
  }, [files, model, place]);
  return files.every((file) => counts.value.has(file)) ? counts.value : undefined;
}

interface TooLongProps extends Where {
  readonly files: Signal<readonly AttachedFile[]>;
  readonly tokens: Counts;
}

/** Warns that the files are longer than the model's context, and offers to shorten them. */
function TooLong({ files, tokens, model, place }: TooLongProps) {
  const { models, engine, webllm, notices } = useApp();
  const { attachments: texts } = useWords();
  const context = {
    server: models.loadedOf(model)?.context_length,
    page: engine.model.value?.contextLength,
    webllm: webllm.model.value?.contextLength,
  }[place];
  const all = files.value.reduce((sum, file) => sum + (tokens.get(file)?.count ?? 0), 0);
  if (context === undefined || all <= context * FILES_SHARE) return null;
  const shorten = (): void => {
    const before = files.value;
    files.value = before.map((file) => firstPart(file, (context * FILES_SHARE * 0.95) / all));
    const names = before.map(({ name }) => name).join(", ");
    notices.offerUndo({ text: texts.shortened(names), undo: () => (files.value = before) });
  };
  return (
    <div class="warning" role="alert">
      <Icon name="warn" />
      <p>{texts.tooLong(countText(all), shortName(model), countText(context))}</p>
      <div class="row">
        <SmallButton onClick={shorten}>{texts.useFirst}</SmallButton>
      </div>
    </div>
  );
}

/** Cuts at the end of a line, if one is near. */
function firstPart(file: AttachedFile, share: number): AttachedFile {
  const chars = Math.floor(file.text.length * share);
  const line = file.text.lastIndexOf("\n", chars);
  return { ...file, text: file.text.slice(0, line > chars * 0.8 ? line : chars).toWellFormed(), isCut: true };
}

const RemoveButton = ({ label, onClick }: { label: string; onClick: () => void }) => (
  <IconButton icon="close" class="icon-button small" label={label} size={14} onClick={onClick} />
);
