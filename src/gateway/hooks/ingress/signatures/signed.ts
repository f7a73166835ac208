/** Schemes described by a form: they read the proof, check its time, and compare it with the right signatures. */
import { createHash } from "node:crypto";
import { AppError } from "../../../../base/index.ts";
import { bodyFields } from "./body-fields.ts";
import { contentOf, readProof, writeProof, type Content, type Proof, type SignatureForm } from "./form.ts";
import type { KeyKind } from "./keys.ts";
import { refused, timestampProblem, type SecretSettings, type SignatureScheme } from "./scheme.ts";

const UNIT_MS = { s: 1000, ms: 1, iso: 1 } as const;

export function signedScheme<Settings extends SecretSettings>(
  keys: KeyKind,
  formOf: (settings: Settings) => SignatureForm,
): SignatureScheme<Settings> {
  return {
    checkSecret: (secret, side, settings) => keys.check(secret, side, formOf(settings)),
    credentialHeaders: (settings) => formOf(settings).signature.headers ?? [],
    verify(settings, request) {
      const form = formOf(settings);
      const proof = readProof(form, request);
      if (!proof) return refused("the signature header is missing or malformed");
      const { toleranceSeconds, timestampUnit } = form;
      if (form.timestamp) {
        const problem = timestampProblem(millisecondsOf(proof.timestamp, form), {
          nowMs: request.nowMs,
          toleranceSeconds,
          unitMs: UNIT_MS[timestampUnit],
        });
        if (problem) return refused(problem);
      }
      let content: Content;
      try {
        content = contentOf(form, request, proof);
      } catch (error) {
        if (error instanceof AppError) return refused(error.message);
        throw error;
      }
      const { signatures } = proof;
      if (!keys.matches(form, settings.secrets, { signatures, content })) return refused("no signature matches");
      const deliveryId = deliveryIdOf(form, proof, content);
      return { ok: true, ...(deliveryId ? { deliveryId } : {}) };
    },
    sign(settings, request) {
      const form = formOf(settings);
      const field = bodyFields(request);
      const inBody = (paths: readonly string[] | undefined): string | undefined =>
        paths?.map(field).find((value) => value !== undefined);
      const proof = {
        timestamp: form.timestamp ? (inBody(form.timestamp.fields) ?? timeNow(form, request.nowMs)) : "",
        id: form.id ? (inBody(form.id.fields) ?? request.id) : "",
      };
      return writeProof(form, keys.sign(form, settings.secrets[0] ?? "", contentOf(form, request, proof)), proof);
    },
  };
}

/** Converts ISO 8601 to milliseconds as digits; other text is unchanged. */
function millisecondsOf(timestamp: string | undefined, { timestampUnit }: SignatureForm): string | undefined {
  if (timestampUnit !== "iso" || timestamp === undefined) return timestamp;
  if (!/^\d{4}-\d\d-\d\dT[\d:.]{5,24}(Z|[+-]\d\d:?\d\d)$/.test(timestamp)) return undefined;
  const at = Date.parse(timestamp);
  return Number.isNaN(at) ? undefined : String(at);
}

function timeNow({ timestampUnit }: SignatureForm, nowMs: number): string {
  if (timestampUnit === "iso") return new Date(nowMs).toISOString();
  return String(Math.floor(nowMs / UNIT_MS[timestampUnit]));
}

/**
 * The sender's id of a delivery. Without one, a digest of the signed content if that includes the time: a repeated
 * request then has the same digest.
 */
function deliveryIdOf(form: SignatureForm, { id }: Proof, content: Content): string | undefined {
  if (id !== undefined && id !== "") return id;
  if (!form.timestamp || !form.signedContent.includes("{timestamp}")) return undefined;
  const hash = createHash("sha256");
  for (const piece of content) hash.update(piece);
  return `signed:${hash.digest("hex")}`;
}
