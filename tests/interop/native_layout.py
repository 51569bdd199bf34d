"""Reads a packed dataset with NumPy alone and checks it against the description of the format (docs/formats.md).

    native_layout.py [--write-with PROGRAM] DATASET [TOKENS]

PROGRAM makes DATASET and TOKENS first, in place of what is there. TOKENS: the tokens of all segments, 32-bit numbers in the
order of the rows. Exits 1 with what is wrong.
"""
import argparse
import json
import pathlib
import shutil
import subprocess

import numpy as np

TYPES = {
    "input_ids": ["<u2", "<u4"], "segment_ids": ["<u2", "<u4"], "position_ids": ["<u2", "<u4"], "row_offsets": ["<i8"],
    "seq_lengths": ["<i4"], "seq_slots": ["<i4"], "seq_source": ["<i8"], "seq_added": ["|u1"],
}

INPUT_IDS_HASH = 0x4D36B1C94AFDF874  # XXH3-64 of the column's name


def load(shard, entry):
    """An array as a trainer maps it."""
    path = shard / entry["name"]
    assert path.stat().st_size == entry["bytes"], path
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    assert array.offset % 64 == 0 and array.flags.c_contiguous, path
    assert array.dtype.str in TYPES[path.stem], (path, array.dtype)
    return array


def philox(purpose, index):
    """Two 64-bit numbers for each index, at seed 0 and stream 0."""
    index = np.asarray(index, np.uint64)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    counter = [index & low, index >> shift, np.full_like(index, purpose), np.zeros_like(index)]
    key = [0, 0]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [second >> shift ^ counter[1] ^ np.uint64(key[0]), second & low,
                   first >> shift ^ counter[3] ^ np.uint64(key[1]), first & low]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return counter[1] << shift | counter[0], counter[3] << shift | counter[2]


def keys(purpose, index):
    """The low and the high lane's."""
    return [value | np.uint64(1) for value in philox(purpose, index)]


def fingerprint(ids, ordinals, positions):
    """32 hex digits. All three arrays are of one element a source token."""
    factors = zip(keys(16, ordinals), keys(17, positions), keys(18, INPUT_IDS_HASH))
    values = np.asarray(ids, np.uint64) + np.uint64(1)
    low, high = [int((record * position * column * values).sum(dtype=np.uint64)) for record, position, column in factors]
    return f"{high:016x}{low:016x}"


def source_tokens(manifest, arrays):
    """Ids, record ordinals and positions of a shard's source tokens: what was added is left out."""
    first_ordinal = np.concatenate([[0], np.cumsum([source["sequences"] for source in manifest["sources"]])])
    lengths = arrays["seq_lengths"].astype(int)
    slots = arrays.get("seq_slots", lengths).astype(int)
    added = arrays.get("seq_added", np.zeros(len(lengths), np.uint8)).astype(int)
    row_tokens = manifest["row_tokens"]
    tokens = lengths - (added & 1) - (added >> 1)
    row_of = np.repeat(np.arange(len(arrays["row_offsets"]) - 1), np.diff(arrays["row_offsets"]))
    slots_before = np.cumsum(slots) - slots
    row_begin = np.concatenate([slots_before, [slots.sum()]])[arrays["row_offsets"][:-1]]
    begin = row_of * row_tokens + slots_before - row_begin[row_of] + (added & 1)
    place = np.concatenate([np.arange(count) for count in tokens] + [np.zeros(0, int)])
    spread = lambda values: np.repeat(values, tokens)
    files, records, first_tokens = arrays["seq_source"].T
    ids = arrays["input_ids"].reshape(-1)[spread(begin) + place]
    return ids, spread(first_ordinal[files] + records), spread(first_tokens) + place


def check_row(row_tokens, lengths, slots, segment_ids, position_ids, position_start):
    """The two derived arrays, and the attention masks that they and the lengths lead to."""
    segments = np.zeros(row_tokens, int)
    positions = np.zeros(row_tokens, int)
    mask = np.zeros((row_tokens, row_tokens), bool)  # [query, key]: causal within a segment
    begin = 0
    for number, (length, places) in enumerate(zip(lengths, slots), 1):
        segments[begin:begin + length] = number
        positions[begin:begin + length] = position_start + np.arange(length)
        mask[begin:begin + length, begin:begin + length] = np.tri(length, dtype=bool)
        begin += places
    assert (segment_ids == segments).all() and (position_ids == positions).all()
    same_segment = (segment_ids[:, None] == segment_ids[None, :]) & (segment_ids[:, None] != 0)
    assert (same_segment & np.tri(row_tokens, dtype=bool) == mask).all()


def check(dataset, tokens):
    manifest = json.loads((dataset / "manifest.json").read_bytes())
    row_tokens, segments_seen, rows_seen, row_segments = manifest["row_tokens"], 0, 0, []
    found = []
    for entry in manifest["shards"]:
        shard = dataset / entry["folder"]
        arrays = {pathlib.Path(file["name"]).stem: load(shard, file) for file in entry["files"]}
        offsets, lengths = arrays["row_offsets"], arrays["seq_lengths"]
        slots = arrays.get("seq_slots", lengths)
        assert arrays["input_ids"].shape == (entry["rows"], row_tokens)
        assert offsets.shape == (entry["rows"] + 1,) and offsets[0] == 0 and offsets[-1] == len(lengths) == entry["segments"]
        assert arrays["seq_source"].shape == (len(lengths), 3)
        for row in range(entry["rows"]):
            mine = slice(offsets[row], offsets[row + 1])
            check_row(row_tokens, lengths[mine], slots[mine], arrays["segment_ids"][row].astype(int),
                      arrays["position_ids"][row].astype(int), manifest["position_start"])
            is_token = arrays["segment_ids"][row] != 0
            found.append(arrays["input_ids"][row][is_token])
            assert (arrays["input_ids"][row][~is_token] == manifest["ids"]["pad_id"]).all()
        assert fingerprint(*source_tokens(manifest, arrays)) == entry["fingerprint"], entry["folder"]
        rows_seen += entry["rows"]
        segments_seen += entry["segments"]
        row_segments.append(np.diff(offsets).max(initial=0))
    assert rows_seen == manifest["rows"] and segments_seen >= manifest["segments"]
    assert max(row_segments, default=0) == manifest["max_segments_in_row"]
    if tokens is not None:
        assert (np.concatenate(found) == tokens).all()
    print(f"{dataset.name}: {rows_seen} rows of {row_tokens}, {segments_seen} segments")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write-with", metavar="PROGRAM")
    parser.add_argument("dataset", type=pathlib.Path)
    parser.add_argument("tokens", type=pathlib.Path, nargs="?")
    arguments = parser.parse_args()
    if arguments.write_with:
        shutil.rmtree(arguments.dataset, ignore_errors=True)
        subprocess.run([arguments.write_with, arguments.dataset], check=True)
    check(arguments.dataset, np.fromfile(arguments.tokens, "<u4") if arguments.tokens else None)


if __name__ == "__main__":
    main()
