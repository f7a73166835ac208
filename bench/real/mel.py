"""Records spectrograms of transformers' WhisperFeatureExtractor, with 80 and 128 bins, of a second that the test makes
itself (`test/engine/audio/mel.test.ts`): 20 of 100 frames, (bins, frames) in float32, one after the other.

  python bench/real/mel.py test/engine/audio/files/mel.bin
"""
import sys
import numpy
from transformers import WhisperFeatureExtractor

RATE = 16000
FRAMES = [*range(8), *range(44, 48), *range(92, 100)]


def sound() -> numpy.ndarray:
    values, state = [], 1
    for i in range(RATE):
        state = state * 16807 % 2147483647
        t = i / RATE
        value = 0.3 * numpy.sin(2 * numpy.pi * (200 + 3000 * t) * t) + 0.02 * (state / 2**30 - 1)
        values.append(value * 0.001 if i < RATE / 8 else value)
    return numpy.array(values, dtype=numpy.float32)


with open(sys.argv[1], "wb") as file:
    for bins in (80, 128):
        extractor = WhisperFeatureExtractor(feature_size=bins, chunk_length=1)
        features = extractor(sound(), sampling_rate=RATE, return_tensors="np").input_features[0]
        file.write(features[:, FRAMES].astype("<f4").tobytes())
