import { expect, test } from "bun:test";
import { findChatFormat } from "../../../../src/engine/text/template/detect.ts";

test.each([
  ["chatml", "{% for m in messages %}{{'<|im_start|>' + m['role'] + m['content'] + '<|im_end|>'}}{% endfor %}"],
  ["llama3-instruct", "{{ '<|start_header_id|>' + role + '<|end_header_id|>\\n' + text + '<|eot_id|>' }}"],
  ["llama2-chat", "{{ bos_token + '[INST] <<SYS>>\\n' + system + '\\n<</SYS>>\\n' + text + ' [/INST]' }}"],
  ["gemma-instruct", "{{ '<start_of_turn>' + role + '\\n' + text + '<end_of_turn>\\n' }}"],
  ["gemma3-instruct", "{{ '<start_of_turn>' + role }}{{ '<start_of_image>' }}{{ '<end_of_turn>\\n' }}"],
  ["phi-3", "{{ '<|user|>\\n' + text + '<|end|>\\n<|assistant|>\\n' }}"],
  ["zephyr", "{{ '<|user|>\\n' + text + eos_token + '<|assistant|>' }}"],
  ["command-r", "{{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + text + '<|END_OF_TURN_TOKEN|>' }}"],
])("%s is detected by its turn markers, which include its stop strings", (name, jinja) => {
  const found = findChatFormat(jinja);
  expect(found?.name).toBe(name);
  expect(found?.stop.some((stop) => jinja.includes(stop))).toBe(true);
});

test("a template with other, half or no markers has no known format", () => {
  for (const jinja of [
    "",
    "{{ messages }}",
    "USER: {{ text }} ASSISTANT:",
    "<|im_start|>{{ text }}",
    "<|assistant|>",
  ]) {
    expect(findChatFormat(jinja)).toBeUndefined();
  }
});
