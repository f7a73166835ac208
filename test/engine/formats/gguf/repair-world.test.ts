/** Files of RWKV that name a chat template in place of one. */
import { expect, test } from "bun:test";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { repairGguf } from "../../../../src/engine/formats/gguf/repair/index.ts";
import { parseJinja } from "../../../../src/engine/text/index.ts";
import { withFolder } from "./fixture.ts";

test("the template name rwkv-world becomes a template that renders llama.cpp's prompt", async () => {
  await withFolder(async (pathOf) => {
    const path = pathOf("world.gguf");
    const metadata = { "general.architecture": "rwkv6", "tokenizer.chat_template": "rwkv-world" };
    await writeGguf(path, { metadata, tensors: [] });
    const file = repairGguf(openGguf(path));
    const template = parseJinja(String(file.metadata.get("tokenizer.chat_template")));
    file.close();
    const turns = ["system", "user", "assistant", "user"].map((role, i) => ({ role, content: ` turn ${i}\n` }));
    expect(template.render({ messages: turns, add_generation_prompt: true }, new Date(0))).toBe(
      "System: turn 0\n\nUser: turn 1\n\nAssistant: turn 2\n\nUser: turn 3\n\nAssistant:",
    );
  });
});
