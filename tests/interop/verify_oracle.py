#!/usr/bin/env python3
"""Checks a packed dataset with NumPy alone, from docs/formats.md: nothing here knows how shardpack packs or verifies.

    verify_oracle.py FOLDER [SOURCE.npy ...]

Segment and position ids are built again from the lengths, block-diagonal masks from both and compared. With the sources (1-D NPY
files with X.lengths.npy beside them, in the order packed) every token is compared, and each must be in a row or in removed.csv,
once. Exits with 1 and a message at the first difference.
"""
import csv
import json
import sys
from pathlib import Path

import numpy as np

MASKED_ROWS = 40  # masks have row_tokens^2 entries: a few rows from each end of a shard do


def mask_from_lengths(lengths, slots, row_tokens):
    mask = np.zeros((row_tokens, row_tokens), bool)
    begin = 0
    for length, room in zip(lengths, slots):
        mask[begin:begin + length, begin:begin + length] = True
        begin += room
    return mask


def mask_from_segment_ids(ids):
    return (ids[:, None] == ids[None, :]) & (ids[:, None] > 0)


def check_shard(folder, manifest, visit):
    """visit(file, record, first_token, tokens) for every segment."""
    load = lambda name: np.load(folder / f"{name}.npy", mmap_mode="r")
    ids, offsets, lengths, source = (load(n) for n in ("input_ids", "row_offsets", "seq_lengths", "seq_source"))
    slots = load("seq_slots") if (folder / "seq_slots.npy").exists() else lengths
    added = load("seq_added") if (folder / "seq_added.npy").exists() else np.zeros(len(lengths), np.uint8)
    derived = [load(n) for n in ("segment_ids", "position_ids")] if (folder / "segment_ids.npy").exists() else None
    rows, row_tokens = ids.shape
    assert row_tokens == manifest["row_tokens"] and len(offsets) == rows + 1 and offsets[-1] == len(lengths), folder
    for row in range(rows):
        segments, positions = np.zeros(row_tokens, np.int64), np.zeros(row_tokens, np.int64)
        expected = np.full(row_tokens, manifest["ids"]["pad_id"], np.int64)
        begin = 0
        of_row = range(offsets[row], offsets[row + 1])
        for number, s in enumerate(of_row, 1):
            length = int(lengths[s])
            bos, eos = int(added[s]) & 1, int(added[s]) >> 1
            segments[begin:begin + length] = number
            positions[begin:begin + length] = np.arange(length) + manifest["position_start"]
            tokens = visit(*(int(x) for x in source[s]), length - bos - eos)
            if tokens is None:
                tokens = ids[row, begin + bos:begin + length - eos]
            expected[begin:begin + length] = np.concatenate(
                [[manifest["ids"]["bos_id"]] * bos, tokens, [manifest["ids"]["eos_id"]] * eos])
            begin += int(slots[s])
        place = f"{folder.name} row {row}"
        assert begin <= row_tokens, f"{place}: segments take {begin} slots"
        assert np.array_equal(ids[row], expected), f"{place}: token ids"
        if derived:
            assert np.array_equal(derived[0][row], segments), f"{place}: segment ids"
            assert np.array_equal(derived[1][row], positions), f"{place}: position ids"
            if min(row, rows - 1 - row) < MASKED_ROWS // 2:
                by_length = mask_from_lengths(lengths[of_row.start:of_row.stop], slots[of_row.start:of_row.stop], row_tokens)
                assert np.array_equal(mask_from_segment_ids(derived[0][row]), by_length), f"{place}: mask"
    return rows


def check(folder, sources=None):
    """sources: for each source file a list of the token arrays of its records, or None. \\return what was checked, a line."""
    folder = Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    used = [[np.zeros(len(record), int) for record in file] for file in sources] if sources is not None else None

    def visit(file, record, first, tokens):
        if sources is None:
            return None
        if counting:
            used[file][record][first:first + tokens] += 1
        return sources[file][record][first:first + tokens]

    rows, counting, planned = 0, True, manifest["rows"] - manifest["repeated"]["rows"] - manifest["fill_rows"]
    for shard in manifest["shards"]:
        counting = rows < planned
        rows += check_shard(folder / shard["folder"], manifest, visit)
    assert rows == manifest["rows"], f"{rows} rows, the manifest says {manifest['rows']}"
    if sources is not None:
        names = [source["name"] for source in manifest["sources"]]
        if (folder / "removed.csv").exists():
            for line in csv.DictReader((folder / "removed.csv").open(newline="")):
                first = int(line["first_token"])
                used[names.index(line["source"])][int(line["record"])][first:first + int(line["tokens"])] += 1
        for name, file in zip(names, used):
            for number, record in enumerate(file):
                assert (record == 1).all(), f"{name} record {number}: tokens in no place or in several"
    return f"{folder}: {rows} rows" + (f", tokens of {len(sources)} source files" if sources is not None else "")


def read_source(path):
    lengths = np.load(Path(path).with_suffix(".lengths.npy"))
    return np.split(np.load(path), np.cumsum(lengths)[:-1]) if len(lengths) else []


if __name__ == "__main__":
    try:
        print(check(sys.argv[1], [read_source(path) for path in sys.argv[2:]] or None))
    except AssertionError as difference:
        sys.exit(str(difference))
