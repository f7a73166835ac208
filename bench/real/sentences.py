# Vectors of sentence-transformers, for record-vectors.ts: sentences.py MODEL_FOLDER TEXTS.json OUT.f32
import json
import sys

from sentence_transformers import SentenceTransformer

folder, texts, out = sys.argv[1:]
model = SentenceTransformer(folder, device="cpu")
# one by one, so that no text is padded
vectors = model.encode(json.load(open(texts)), batch_size=1, convert_to_numpy=True)
vectors.astype("<f4").tofile(out)
