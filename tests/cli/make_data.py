#!/usr/bin/env python3
"""The small data that the cases read: 100 sequences of 1 to 60 tokens in two JSON lines files, and their histogram."""
import collections, json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
lengths = [number * 37 % 60 + 1 for number in range(100)]
sequences = [[(number * 7 + at) % 500 + 3 for at in range(length)] for number, length in enumerate(lengths)]

(folder / "shards").mkdir()
for part in range(2):
    lines = [json.dumps({"input_ids": ids}) + "\n" for ids in sequences[part * 50 : part * 50 + 50]]
    (folder / "shards" / f"part-{part}.jsonl").write_text("".join(lines))
counts = collections.Counter(lengths)
(folder / "lengths.csv").write_text("length,count\n" + "".join(f"{length},{counts[length]}\n" for length in sorted(counts)))
