/** `_debug_render_only`: replies with the model's prompt instead of its answer. */
import type { ChatRequest, GenerateRequest, Runtime } from "../../runtime/portable.ts";

/** The field `_debug_info` of a reply. */
export async function debugInfo(
  runtime: Pick<Runtime, "render">,
  request: GenerateRequest | ChatRequest,
): Promise<{ _debug_info: object }> {
  const rendered = await runtime.render(request);
  const images = "messages" in request ? request.messages.flatMap((message) => message.images ?? []) : request.images;
  const count = images?.length ?? 0;
  return { _debug_info: { rendered_template: rendered, ...(count > 0 ? { image_count: count } : {}) } };
}
