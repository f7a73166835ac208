"""Byte-level BPE: trains the vocabulary on the corpus and encodes text as llama.cpp does for `tokenizer.ggml.pre =
llama-bpe`.

The split is the Llama 3 pre-tokenizer regex (`LLAMA_VOCAB_PRE_TYPE_LLAMA3` in llama.cpp's llama-vocab.cpp), written
for Python's `re`, which has no \\p{L}: [^\\W\\d_] is a letter. It differs only on numerals that are not decimal
digits (such as Roman numeral signs), which the corpus does not contain. A piece that is a token as a whole is not
merged (`ignore_merges`).
"""

import json
import re
import sys
from collections import Counter, defaultdict

VOCAB = 4096
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]  # the last ids of the vocabulary, in this order
PIECE = re.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?[^\W\d_]+|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIALS)) + ")")


def byte_alphabet():
    """The character that stands for each byte in token texts (GPT-2's table): itself where printable, else 256 + n."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    rest = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(rest)) for byte in range(256)]


BYTE_CHARS = byte_alphabet()


def spell(piece):
    return "".join(BYTE_CHARS[byte] for byte in piece.encode())


class Pairs:
    """Counts of neighbouring symbols over the words of the corpus, kept up to date while merges are applied."""

    def __init__(self, counts):
        self.words = [(list(spell(piece)), count) for piece, count in counts.items()]
        self.count, self.where = Counter(), defaultdict(set)
        for i, (symbols, count) in enumerate(self.words):
            for pair in zip(symbols, symbols[1:]):
                self.count[pair] += count
                self.where[pair].add(i)

    def best(self):
        """The most frequent pair; equal counts go to the one that sorts first, so that a run can be repeated."""
        return min(self.count.items(), key=lambda item: (-item[1], item[0]))[0]

    def merge(self, pair):
        for i in self.where.pop(pair):
            symbols, count = self.words[i]
            for old in zip(symbols, symbols[1:]):
                self.count[old] -= count
            k = 0
            while k < len(symbols) - 1:
                if (symbols[k], symbols[k + 1]) == pair:
                    symbols[k : k + 2] = [symbols[k] + symbols[k + 1]]
                k += 1
            for new in zip(symbols, symbols[1:]):
                self.count[new] += count
                self.where[new].add(i)
        del self.count[pair]


def train(texts, vocab=VOCAB):
    """(tokens, merges) learned from the texts: 256 bytes, then merges in order, then the special tokens."""
    counts = Counter()
    for text in texts:
        for part in SPECIAL.split(text)[::2]:
            counts.update(PIECE.findall(part))
    pairs, merges, tokens = Pairs(counts), [], list(BYTE_CHARS)
    while len(tokens) < vocab - len(SPECIALS):
        pair = pairs.best()
        pairs.merge(pair)
        merges.append(pair)
        tokens.append("".join(pair))
    return tokens + SPECIALS, merges


class Tokenizer:
    """Text to ids, with a cache of pieces; special tokens in the text become their ids."""

    def __init__(self, tokens, merges):
        self.tokens, self.merges = tokens, [tuple(merge) for merge in merges]
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.rank = {merge: i for i, merge in enumerate(self.merges)}
        self.cache = {}

    @classmethod
    def load(cls, path):
        with open(path) as file:
            return cls(**json.load(file))

    def save(self, path):
        with open(path, "w") as file:
            json.dump({"tokens": self.tokens, "merges": self.merges}, file)

    def encode_piece(self, piece):
        spelled = spell(piece)
        if spelled in self.ids:
            return [self.ids[spelled]]
        symbols = list(spelled)
        while len(symbols) > 1:
            ranked = [(self.rank.get(pair, len(self.rank)), i) for i, pair in enumerate(zip(symbols, symbols[1:]))]
            rank, i = min(ranked)
            if rank == len(self.rank):
                break
            symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
        return [self.ids[symbol] for symbol in symbols]

    def encode(self, text):
        out, cache = [], self.cache
        for i, part in enumerate(SPECIAL.split(text)):
            if i % 2:
                out.append(self.ids[part])
                continue
            for piece in PIECE.findall(part):
                if piece not in cache:
                    cache[piece] = self.encode_piece(piece)
                out += cache[piece]
        if len(cache) > 1_000_000:  # invented words never come back; about 200 MB
            cache.clear()
        return out

    def decode(self, ids):
        byte, out = {char: i for i, char in enumerate(BYTE_CHARS)}, bytearray()
        for token in (self.tokens[i] for i in ids):
            out += token.encode() if token in SPECIALS else bytes(byte[char] for char in token)
        return out.decode(errors="replace")


def main(path, documents=24_000):
    """Trains on the first documents of a stream of their own and writes the tokenizer to `path`."""
    from corpus import document

    tokenizer = Tokenizer(*train(document(f"tokenizer-{i}") for i in range(int(documents))))
    tokenizer.save(path)
    sample = [document(f"held-out-{i}") for i in range(500)]
    ratio = sum(map(len, sample)) / sum(len(tokenizer.encode(text)) for text in sample)
    print(f"{len(tokenizer.tokens)} tokens; {ratio:.2f} characters per token")


if __name__ == "__main__":
    main(*sys.argv[1:])
