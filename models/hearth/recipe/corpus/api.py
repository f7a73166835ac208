"""Questions about Hearth's own HTTP API: endpoints, request fields, options, errors, the embedded model."""

ENDPOINTS = {
    "/api/generate": ("POST", "completes a prompt", "complete a prompt"),
    "/api/chat": ("POST", "writes the next message of a chat", "chat with a model"),
    "/api/tags": ("GET", "lists the local models", "list the local models"),
    "/api/show": ("POST", "shows the details of a model", "see the details of a model"),
    "/api/ps": ("GET", "lists the models that are loaded in memory", "see which models are loaded"),
    "/api/version": ("GET", "returns the version of the server", "get the version of the server"),
    "/api/create": ("POST", "creates a model", "create a model"),
    "/api/pull": ("POST", "downloads a model from a registry", "download a model"),
    "/api/push": ("POST", "uploads a model to a registry", "upload a model"),
    "/api/copy": ("POST", "copies a model under a new name", "copy a model"),
    "/api/delete": ("DELETE", "deletes a model", "delete a model"),
    "/api/embed": ("POST", "turns text into vectors", "make embeddings"),
}
FIELDS = {
    "keep_alive": "keep_alive says how long a model stays in memory after a request. The default is 5 minutes.",
    "num_ctx": "num_ctx sets the size of the context window in tokens.",
    "num_predict": "num_predict sets how many tokens the model may write at most.",
    "stream": "With stream set to false you get one JSON object. Otherwise the answer comes as a stream of JSON lines.",
    "options": "options holds the settings of the model, such as temperature, seed and num_ctx.",
    "temperature": "temperature sets how random the answer is. At 0 the model always takes the most likely token.",
    "seed": "With a fixed seed the same request gives the same answer.",
    "top_k": "top_k keeps only the k most likely tokens.",
    "top_p": "top_p keeps the most likely tokens whose chances add up to p.",
    "stop": "stop is a list of texts. The model stops when it writes one of them.",
    "format": "Set format to json to get an answer in JSON. You can also give a JSON schema.",
    "tools": "tools is a list of functions that the model may call. Send it with /api/chat.",
    "messages": "messages is the list of chat messages. Each has a role and a content.",
    "prompt": "prompt is the text that /api/generate completes.",
    "system": "system is the system message. It tells the model how to behave.",
    "raw": "With raw set to true the prompt is sent to the model without a template.",
    "template": "template is the text that turns messages into one prompt.",
    "repeat_penalty": "repeat_penalty makes the model repeat itself less.",
    "eval_count": "eval_count is the number of tokens in the answer.",
    "done_reason": "done_reason says why the answer ended: stop, length, load or unload.",
    "done": "done is true in the last object of an answer.",
    "context": "context is the encoding of the conversation. It is only there for old clients.",
    "HEARTH_HOST": "HEARTH_HOST is the address of the server. The default is 127.0.0.1:11434.",
    "HEARTH_MODELS": "HEARTH_MODELS is the folder of the model store.",
    "HEARTH_BACKEND": "HEARTH_BACKEND chooses what runs the model, for example cpu, onnx or webgpu.",
}
QUESTIONS = {
    "How do I list the models?": "Send GET /api/tags.",
    "How do I stream the answer?": "Streaming is on by default. Set stream to false to turn it off.",
    "How do I turn off streaming?": "Set stream to false in the request.",
    "How do I unload a model?": "Send a request with keep_alive set to 0.",
    "How do I keep a model in memory?": "Set keep_alive to a longer time, or to -1 to keep it loaded.",
    "How do I load a model?": "Send /api/generate with the name of the model and no prompt.",
    "How do I get JSON?": "Set format to json and ask for JSON in the prompt.",
    "Which port does Hearth use?": "Hearth uses port 11434 by default.",
    "What is the default port?": "The default port is 11434.",
    "How do I set the context size?": "Set num_ctx in options.",
    "How do I start Hearth?": "Run bun install and then bun run server.",
    "How do I start the server?": "Run bun run server.",
    "How do I run the tests?": "Run bun test.",
    "How do I get the same answer every time?": "Set temperature to 0, or set a fixed seed, in options.",
    "How do I make the answer shorter?": "Set num_predict in options, or ask for a short answer.",
    "How do I change the system prompt?": "Send a message with the role system, or set system in /api/generate.",
    "How do I use tools?": "Send a list of tools with /api/chat. The model answers with tool_calls when a tool fits.",
    "How do I send a tool result?": "Add a message with the role tool and the result as its content.",
    "How fast is the answer?": "Divide eval_count by eval_duration. The durations are in nanoseconds.",
    "In which unit are durations?": "All durations are in nanoseconds.",
    "What format do model files have?": "Hearth reads models from GGUF files.",
    "Which roles can a message have?": "A message has the role system, user, assistant or tool.",
    "What is GGUF?": "GGUF is a file format for language models. It holds the weights and the tokenizer.",
    "What is a Modelfile?": "A Modelfile is a text file that describes a model: FROM, PARAMETER, SYSTEM and TEMPLATE.",
    "What is the context window?": "The context window is how many tokens the model can see at once.",
    "What is a backend?": "A backend is the part of Hearth that runs the model, for example on the CPU or on a GPU.",
    "What happens if the model does not exist?": "You get status 404 and an error message.",
    "What is your context length?": "My context length is 2048 tokens.",
    "Can I use Hearth offline?": "Yes. Hearth runs on your own machine.",
    "Is Hearth free?": "Yes. Hearth is under the MIT license.",
    "What license do you have?": "I am under the MIT license.",
    "Which clients work with Hearth?": "Clients for the Ollama API work with Hearth.",
    "Give me a curl example.": 'curl http://127.0.0.1:11434/api/generate -d \'{"model": "hearth", "prompt": "Hello"}\'',
    "How do I call the chat endpoint?": (
        'curl http://127.0.0.1:11434/api/chat -d \'{"model": "hearth", "messages": [{"role": "user", '
        '"content": "Hello"}]}\''
    ),
}


def make(rng):
    """(question, answer) about the API."""
    roll = rng.random()
    if roll < 0.4:
        path, (method, does, want) = rng.choice(list(ENDPOINTS.items()))
        return rng.choice(
            [
                (f"What does {path} do?", f"{path} {does}. Use {method}."),
                (f"What is {path} for?", f"{path} {does}. Use {method}."),
                (f"How do I {want}?", f"Send {method} {path}."),
                (f"Which endpoint do I use to {want}?", f"Use {method} {path}."),
                (f"Which method does {path} use?", f"{path} uses {method}."),
                (f"How can I {want} with the API?", f"Send {method} {path}."),
            ]
        )
    if roll < 0.75:
        field, text = rng.choice(list(FIELDS.items()))
        return rng.choice(
            [
                f"What is {field}?",
                f"What does {field} do?",
                f"What does {field} mean?",
                f"Explain {field}.",
                f"What is {field} in Hearth?",
                f"Tell me about {field}.",
            ]
        ), text
    return rng.choice(list(QUESTIONS.items()))
