/** Ids that join calls and results, in the forms that templates need. */
import { expect, test } from "bun:test";
import { nameResults, withShortIds } from "../../../../src/engine/text/template/call-ids.ts";
import { choosePrompt, renderChat, type PromptMessage } from "../../../../src/engine/text/template/prompt.ts";

const calls = (...named: [name: string, id?: string][]): PromptMessage => ({
  role: "assistant",
  content: "",
  tool_calls: named.map(([name, id]) => ({ ...(id ? { id } : {}), function: { name, arguments: {} } })),
});
const result = (fields: Partial<PromptMessage>): PromptMessage => ({ role: "tool", content: "r", ...fields });
const idsOf = (messages: readonly PromptMessage[]): (string | undefined)[] =>
  messages.flatMap(({ tool_calls = [], tool_call_id, role }) =>
    role === "tool" ? [tool_call_id] : tool_calls.map(({ id }) => id),
  );

test("a result with the id of a call gets the call's tool name", () => {
  const messages = [calls(["f", "1"], ["g", "2"]), result({ tool_call_id: "2" }), result({ tool_call_id: "3" })];
  expect(nameResults(messages).map(({ tool_name }) => tool_name)).toEqual([undefined, "g", undefined]);
  expect(nameResults([calls(["f", "1"]), result({ tool_call_id: "1", tool_name: "h" })])[1]!.tool_name).toBe("h");
});

test("short ids are equal exactly if the long ones are", () => {
  const messages = [
    calls(["f", "call_ab12cd34"], ["g", "call_xy98zw76"]),
    result({ tool_call_id: "call_xy98zw76" }),
    result({ tool_call_id: "call_ab12cd34" }),
    calls(["f", "abcdef123"]),
    result({ tool_call_id: "abcdef123" }),
  ];
  const ids = idsOf(withShortIds(messages));
  for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9]{9}$/);
  expect([ids[2], ids[3], ids[4], ids[5]]).toEqual([ids[1], ids[0], "abcdef123", "abcdef123"]);
  expect(new Set(ids).size).toBe(3);
});

test("a short id equals no id of the client", () => {
  const [first, second] = idsOf(withShortIds([calls(["f", "long id"]), calls(["g", "000000000"])]));
  expect([first !== second, second]).toEqual([true, "000000000"]);
});

test("results without an id belong to the call of their name, or to the first open call", () => {
  const [f, g, first, second, stray] = idsOf(
    withShortIds([calls(["f"], ["g"]), result({ tool_name: "g" }), result({}), result({})]),
  );
  expect([first, second]).toEqual([g, f]);
  expect(new Set([f, g, stray]).size).toBe(3);
});

test("a template that refuses long ids gets short ones, and other templates the client's ids", () => {
  const show =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.id }} {% endfor %}{{ m.tool_call_id }}{% endfor %}";
  const check =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception('no') }}{% endif %}{% endfor %}{% endfor %}";
  const messages = [calls(["f", "call_ab12cd34"]), result({ tool_call_id: "call_ab12cd34" })];
  const render = (jinja: string): string => renderChat(choosePrompt({ jinja }), { messages, now: new Date(0) });
  expect(render(show)).toBe("call_ab12cd34 call_ab12cd34");
  expect(render(check + show)).toBe("000000000 000000000");
});
