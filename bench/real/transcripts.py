# Transcripts by transformers in float32, and its spectrograms: transcripts.py MODEL_FOLDER SAMPLES…
#
#   python3 -m venv VENV && VENV/bin/pip install torch transformers
#
# SAMPLES: files of float32 at 16,000 per second, 30 seconds at most. Prints each transcript as JSON, and writes
# SAMPLES.mel, (80, 3000) in float32.
import json
import os
import sys

import numpy
import torch
from tokenizers import Tokenizer
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

folder, *paths = sys.argv[1:]
tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
extractor = WhisperFeatureExtractor(feature_size=80)
start = [tokenizer.token_to_id(f"<|{name}|>") for name in ("startoftranscript", "en", "transcribe", "notimestamps")]
end = tokenizer.token_to_id("<|endoftext|>")
with open(os.path.join(folder, "config.json")) as file:
    config = json.load(file)
never, first_never = config["suppress_tokens"], config["begin_suppress_tokens"]
for path in paths:
    samples = numpy.fromfile(path, dtype="<f4")
    features = extractor(samples, sampling_rate=16000, return_tensors="np").input_features
    features[0].astype("<f4").tofile(f"{path}.mel")
    ids = list(start)
    with torch.no_grad():
        states = model.model.encoder(torch.from_numpy(features))
        while len(ids) < 200:
            logits = model(encoder_outputs=states, decoder_input_ids=torch.tensor([ids])).logits[0, -1]
            logits[never] = -torch.inf
            logits[end + 1 :] = -torch.inf
            if len(ids) == len(start):
                logits[first_never] = -torch.inf
            ids.append(int(logits.argmax()))
            if ids[-1] == end:
                break
    print(json.dumps(tokenizer.decode(ids[len(start):], skip_special_tokens=True).strip()), flush=True)
