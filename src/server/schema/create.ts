/**
 * The body of `POST /api/create`, in both shapes: a Modelfile as text or by its path, or a base with changes. Fields
 * with several types, or with special errors, are checked where they are used.
 */
import { t } from "elysia";
import { Message } from "./message.ts";

const Texts = t.Unsafe<Record<string, unknown>>({ type: "object" });
const OpenMap = t.Record(t.String(), t.Unknown());

export const CreateBody = t.Object(
  {
    model: t.Optional(t.String()),
    /** The former name of `model`. */
    name: t.Optional(t.String()),
    stream: t.Optional(t.Boolean()),
    quantize: t.Optional(t.String()),
    /** The former name of `quantize`. */
    quantization: t.Optional(t.String()),

    modelfile: t.Optional(t.String()),
    path: t.Optional(t.String()),

    from: t.Optional(t.String()),
    /** Allows http and unverified certificates when the base is pulled. */
    insecure: t.Optional(t.Boolean()),
    files: t.Optional(Texts),
    adapters: t.Optional(Texts),
    /** The name of a model whose weights are the draft. */
    draft: t.Optional(t.String()),
    draft_files: t.Optional(Texts),
    draft_quantize: t.Optional(t.String()),
    remote_host: t.Optional(t.String()),
    template: t.Optional(t.String()),
    license: t.Optional(t.Unknown()),
    system: t.Optional(t.String()),
    parameters: t.Optional(OpenMap),
    messages: t.Optional(t.Array(Message)),
    renderer: t.Optional(t.String()),
    parser: t.Optional(t.String()),
    requires: t.Optional(t.String()),
    info: t.Optional(OpenMap),
  },
  { title: "CreateRequest" },
);
export type CreateBody = typeof CreateBody.static;
