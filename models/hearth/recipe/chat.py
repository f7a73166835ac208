"""The chat format: ChatML turns and Hermes-style tool calls, as a Python renderer and as the Jinja template of the
GGUF.

Both must give the same bytes for every conversation; `verify/` compares them. The model is trained on what `render`
writes.
"""

import json

BEGIN, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TOOLS_HEAD = "# Tools\n\nCall a function when it fits.\n<tools>"
TOOLS_TAIL = '\n</tools>\nTo call one, answer:\n<tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call>'

TEMPLATE = """\
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set system = '' %}
    {%- set rest = messages %}
{%- endif %}
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if system %}
        {{- system + '\\n\\n' }}
    {%- endif %}
    {{- '# Tools\\n\\nCall a function when it fits.\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools>\\nTo call one, answer:\\n' }}
    {{- '<tool_call>\\n{"name": <name>, "arguments": <arguments>}\\n</tool_call><|im_end|>\\n' }}
{%- elif system %}
    {{- '<|im_start|>system\\n' + system + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in rest %}
    {%- if message['role'] == 'tool' %}
        {%- if loop.first or rest[loop.index0 - 1]['role'] != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message['content'] + '\\n</tool_response>' }}
        {%- if loop.last or rest[loop.index0 + 1]['role'] != 'tool' %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- else %}
        {{- '<|im_start|>' + message['role'] + '\\n' }}
        {%- if message['content'] %}
            {{- message['content'] }}
        {%- endif %}
        {%- if message['tool_calls'] %}
            {%- for call in message['tool_calls'] %}
                {%- if call['function'] %}
                    {%- set call = call['function'] %}
                {%- endif %}
                {%- if not loop.first or message['content'] %}
                    {{- '\\n' }}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' + call['name'] + '", "arguments": ' }}
                {%- if call['arguments'] is string %}
                    {{- call['arguments'] }}
                {%- else %}
                    {{- call['arguments'] | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def to_json(value):
    """Jinja's tojson as chat templates have it: one line, a space after ',' and ':', no escapes beyond JSON's own."""
    return json.dumps(value, ensure_ascii=False)


def assistant_text(message):
    """The text of a turn, then its calls, each in its tags."""
    lines = [message["content"]] if message["content"] else []
    for call in message.get("tool_calls", []):
        name, arguments = call["function"]["name"], to_json(call["function"]["arguments"])
        lines.append(f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>')
    return "\n".join(lines)


def render(messages, tools=None, generate=False):
    """The conversation as the model reads it. Without `generate` it ends behind the last turn's end token."""
    system, rest = "", messages
    if messages and messages[0]["role"] == "system":
        system, rest = messages[0]["content"], messages[1:]
    if tools:
        system = (
            (system + "\n\n" if system else "")
            + TOOLS_HEAD
            + "".join("\n" + to_json(tool) for tool in tools)
            + TOOLS_TAIL
        )
    out = [f"{START}system\n{system}{END}\n"] if system else []
    for i, message in enumerate(rest):
        if message["role"] == "tool":
            first = i == 0 or rest[i - 1]["role"] != "tool"
            last = i == len(rest) - 1 or rest[i + 1]["role"] != "tool"
            out.append(
                (f"{START}user" if first else "")
                + f"\n<tool_response>\n{message['content']}\n</tool_response>"
                + (f"{END}\n" if last else "")
            )
        else:
            out.append(f"{START}{message['role']}\n{assistant_text(message)}{END}\n")
    if generate:
        out.append(f"{START}assistant\n")
    return "".join(out)
