/**
 * Thirteen conversations that together reach every branch of a chat template, in the form that templates get: system
 * texts, turns, tools, calls with and without a text, results, old and new thinking, thinking on, off and by level,
 * awkward values, a marker in place of an image.
 */

type Json = Record<string, unknown>;

interface Conversation {
  readonly name: string;
  /** A template's variables, by name. */
  readonly context: Json;
}

const system = { role: "system", content: "You are a helpful assistant.\nAnswer briefly." };
const user = (content: string): Json => ({ role: "user", content });
const answer = (content: string, more: Json = {}): Json => ({ role: "assistant", content, ...more });
const thought = (text: string): Json => ({ thinking: text, reasoning_content: text });
const call = (id: string, name: string, args: Json): Json => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const result = (id: string, name: string, content: string): Json => ({
  role: "tool",
  content,
  name,
  tool_call_id: id,
});

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Get the weather of a city",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", description: "The city's name" },
        unit: { type: "string", enum: ["celsius", "fahrenheit"], description: "The unit" },
      },
      required: ["city"],
    },
  },
};
const book = {
  type: "function",
  function: {
    name: "book_table",
    description: "Book a table. Says <ok> & a number",
    parameters: {
      type: "object",
      properties: {
        guests: { type: "array", description: "Who comes", items: { type: "string" } },
        when: {
          type: "object",
          description: "Day and hour",
          properties: { day: { type: "string" }, hour: { type: "integer", description: "From 0 to 23" } },
          required: ["day"],
        },
        outside: { type: "boolean" },
        tip: { type: "number", nullable: true, description: "In percent" },
      },
      required: ["guests", "when"],
    },
  },
};

function conversation(name: string, messages: readonly Json[], more: Json = {}): Conversation {
  const base = { tools: null, documents: null, add_generation_prompt: true, bos_token: "<BOS>", eos_token: "<EOS>" };
  return { name, context: { messages, ...base, ...more } };
}

const tools = [weather, book];
const asked = user("What is the weather in Oslo?");
const oslo = call("call00001", "get_weather", { city: "Oslo", unit: "celsius" });
const bergen = call("call00002", "get_weather", { city: "Bergen" });

export const CONVERSATIONS: readonly Conversation[] = [
  conversation("a question", [user("Hello, who are you?")]),
  conversation("a system text", [system, user("Hello!")]),
  conversation("several turns", [
    system,
    user("Hi"),
    answer("Hello! How can I help?"),
    user("  Tell me a joke \n"),
    answer(" Why did the chicken cross the road?\n"),
    user("Why?"),
  ]),
  conversation("tools", [asked], { tools }),
  conversation(
    "a call and its result",
    [system, asked, answer("", { tool_calls: [oslo] }), result("call00001", "get_weather", '{"temperature": 4}')],
    { tools },
  ),
  conversation(
    "two calls behind a text, answered, and a new question",
    [
      system,
      user("Oslo or Bergen?"),
      answer("I'll look at both.", { tool_calls: [oslo, bergen] }),
      result("call00001", "get_weather", "4 degrees"),
      result("call00002", "get_weather", "7 degrees"),
      answer("Bergen is warmer."),
      user("Thanks. And in <b>Tromsø</b> & around?"),
    ],
    { tools },
  ),
  conversation("thinking", [system, user("How much is 17 times 23?")], { enable_thinking: true }),
  conversation("no thinking", [user("How much is 17 times 23?")], { enable_thinking: false }),
  conversation("much thinking", [user("How much is 17 times 23?")], {
    enable_thinking: true,
    reasoning_effort: "high",
  }),
  conversation(
    "old thoughts",
    [
      user("How much is 2 and 2?"),
      answer("4", thought("That is easy.\nIt is 4.")),
      user("And 3 and 3?"),
      answer("<think>\nHm.\n</think>\n\n6"),
      user("And 4 and 4?"),
    ],
    { enable_thinking: true },
  ),
  conversation(
    "thoughts before a call, with its result",
    [
      system,
      asked,
      answer("", { ...thought("I have to look that up."), tool_calls: [oslo] }),
      result("call00001", "get_weather", "4 degrees & <rain>"),
      answer("One more.", { ...thought("Bergen is near."), tool_calls: [bergen] }),
      result("call00002", "get_weather", "7 degrees"),
    ],
    { tools, enable_thinking: true },
  ),
  conversation(
    "a call with awkward values",
    [
      user("Book a table.\n<__media__>"),
      answer("", {
        tool_calls: [
          call("call00003", "book_table", {
            guests: ["Åse", 'the "boss"'],
            when: { day: "Friday", hour: 19 },
            outside: true,
            tip: null,
            note: "line 1\nline 2 <&>",
            share: 0.5,
          }),
        ],
      }),
      result("call00003", "book_table", "[1, 2]"),
    ],
    { tools, enable_thinking: false },
  ),
  conversation("a whole conversation", [system, user("<__media__>What is this?"), answer("A cat.")], {
    add_generation_prompt: false,
  }),
];
