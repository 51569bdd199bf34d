#!/usr/bin/env python3
"""Make data/sample from this project's own words: its documents and sources, tokenized by a small byte-level BPE.

    data/make_sample.py            write data/sample
    data/make_sample.py --check    make it again from the texts in docs.jsonl and compare every byte (what the tests do)

Every paragraph (a run of lines without a blank one) is one sequence. The tokenizer is trained here, in four steps:
  1. Text is cut into words: letters, digits or punctuation with the one space before them, or white space.
  2. A word is a list of symbols, to begin with its UTF-8 bytes (ids 0 to 255).
  3. The most frequent pair of neighbours becomes a new symbol everywhere (ids from 256); among equally frequent ones the pair
     whose bytes come first. Repeated until there are VOCAB - 1 symbols.
  4. The last id is <|endoftext|>, which occurs in no sequence.
Files: docs.bin and docs.idx (Megatron), docs.jsonl (ids, text and where it is from), vocab.json and merges.txt (in the layout of
GPT-2's, so that other tokenizer libraries read them). Standard library alone.
"""
import argparse
import collections
import json
import pathlib
import re
import struct
import sys

VOCAB = 2048
WORD = re.compile(r" ?[^\W\d_]+| ?\d+| ?(?:[^\w\s]|_)+|\s+")
ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "data" / "sample"


def printable_bytes():
    """byte -> character, as GPT-2's vocab.json spells bytes: itself when it prints, else the next character from U+0100 on."""
    plain = set(range(0x21, 0x7F)) | set(range(0xA1, 0xAD)) | set(range(0xAE, 0x100))
    spare = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]


class Tokenizer:
    def __init__(self, merges):
        """`merges`: pairs of ids in the order in which they were learned."""
        self.merges = merges
        self.rank = {pair: 256 + i for i, pair in enumerate(merges)}
        self.symbols = [bytes([b]) for b in range(256)]
        for left, right in merges:
            self.symbols.append(self.symbols[left] + self.symbols[right])
        self.known = {}

    def encode_word(self, word):
        ids = list(word.encode())
        while len(ids) > 1:
            best = min(zip(ids, ids[1:]), key=lambda pair: self.rank.get(pair, len(self.symbols)))
            if best not in self.rank:
                break
            ids = replace_pair(ids, best, self.rank[best])
        return ids

    def encode(self, text):
        ids = []
        for word in WORD.findall(text):
            if word not in self.known:
                self.known[word] = self.encode_word(word)
            ids += self.known[word]
        return ids

    def decode(self, ids):
        return b"".join(self.symbols[i] for i in ids).decode()


def replace_pair(ids, pair, new):
    out, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


def train(texts, vocab):
    """Learn merges; pair counts are kept up to date word by word, so that a merge touches only the words that hold its pair."""
    frequency = collections.Counter(word for text in texts for word in WORD.findall(text))
    words = [(list(word.encode()), count) for word, count in sorted(frequency.items())]
    symbols = [bytes([b]) for b in range(256)]
    pairs, holders = collections.Counter(), collections.defaultdict(set)
    for at, (ids, count) in enumerate(words):
        for pair in zip(ids, ids[1:]):
            pairs[pair] += count
            holders[pair].add(at)
    merges = []
    while 256 + len(merges) < vocab - 1:
        top = max(pairs.values())
        pair = min((p for p, n in pairs.items() if n == top), key=lambda p: (symbols[p[0]], symbols[p[1]]))
        new = len(symbols)
        symbols.append(symbols[pair[0]] + symbols[pair[1]])
        merges.append(pair)
        for at in holders.pop(pair):
            ids, count = words[at]
            for old in zip(ids, ids[1:]):
                pairs[old] -= count
            ids = replace_pair(ids, pair, new)
            words[at] = ids, count
            for made in zip(ids, ids[1:]):
                pairs[made] += count
                holders[made].add(at)
        pairs = +pairs  # drop what fell to zero
    return Tokenizer(merges)


def paragraphs():
    """(file, text) of every paragraph of ours, files in sorted order."""
    files = sorted(p for pattern in ("README.md", "docs/**/*.md", "include/**/*.h", "src/**/*.h", "src/**/*.cpp")
                   for p in ROOT.glob(pattern))
    for file in files:
        for text in re.split(r"\n[ \t]*\n+", file.read_text()):
            if text.strip():
                yield file.relative_to(ROOT).as_posix(), text.strip("\n")


def sample_files(sources):
    """name -> bytes of every file of the sample."""
    tokenizer = train([text for _, text in sources], VOCAB)
    sequences = [tokenizer.encode(text) for _, text in sources]
    lengths = [len(ids) for ids in sequences]
    count = len(lengths)
    begin = [0]
    for length in lengths:
        begin.append(begin[-1] + length)

    spell = printable_bytes()
    names = ["".join(spell[byte] for byte in symbol) for symbol in tokenizer.symbols]
    vocabulary = {name: i for i, name in enumerate(names)} | {"<|endoftext|>": VOCAB - 1}
    lines = [json.dumps({"input_ids": ids, "text": text, "source": source}, ensure_ascii=False) + "\n"
             for ids, (source, text) in zip(sequences, sources)]
    return {
        "docs.bin": b"".join(struct.pack(f"<{len(ids)}H", *ids) for ids in sequences),
        "docs.idx": b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1) + struct.pack(f"<{count}i", *lengths)
                    + struct.pack(f"<{count}q", *(2 * b for b in begin[:-1])) + struct.pack(f"<{count + 1}q", *range(count + 1)),
        "docs.jsonl": "".join(lines).encode(),
        "vocab.json": (json.dumps(vocabulary, ensure_ascii=False, indent=0) + "\n").encode(),
        "merges.txt": ("#version: 0.2\n" + "".join(f"{names[a]} {names[b]}\n" for a, b in tokenizer.merges)).encode(),
    }


def check():
    """The sample is what this script makes of the texts in it, and its ids decode to those texts."""
    records = [json.loads(line) for line in (SAMPLE / "docs.jsonl").read_text().splitlines()]
    files = sample_files([(record["source"], record["text"]) for record in records])
    wrong = [name for name, data in files.items() if (SAMPLE / name).read_bytes() != data]
    if wrong:
        sys.exit(f"make_sample.py: not what this script makes: {', '.join(wrong)}")

    vocabulary = json.loads((SAMPLE / "vocab.json").read_text())
    byte_of = {name: byte for byte, name in enumerate(printable_bytes())}
    symbol = {i: bytes(byte_of[c] for c in name) for name, i in vocabulary.items() if name != "<|endoftext|>"}
    ids = struct.unpack(f"<{len(files['docs.bin']) // 2}H", files["docs.bin"])
    decoded = b"".join(symbol[i] for i in ids).decode()
    if decoded != "".join(record["text"] for record in records):
        sys.exit("make_sample.py: the ids do not decode to the texts")
    print(f"{len(records)} sequences, {len(ids)} tokens, {len(vocabulary)} ids: as made by this script")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return check()
    SAMPLE.mkdir(parents=True, exist_ok=True)
    for name, data in sample_files(list(paragraphs())).items():
        (SAMPLE / name).write_bytes(data)
    check()


if __name__ == "__main__":
    main()
