#!/usr/bin/env python3
"""Columns beside the ids, seen from outside: every packed value is the source's at that token or sequence, fill values are everywhere
else, loss tokens add up, and the fingerprint is the documented sum. Usage: columns_test.py SHARDPACK"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np

from native_layout import keys

TOOL = sys.argv[1]
MASK = (1 << 64) - 1
FILL = {"labels": -100}
PER_TOKEN, PER_SEQUENCE = ("labels", "loss_mask", "weights"), ("rank", "score")


def run(*command, expect=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == expect, f"{command}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def make_records(count, seed):
    draw = random.Random(seed)
    records = []
    for number in range(count):
        length = draw.choice([0, 1, 2, draw.randint(1, 30), draw.randint(30, 150)])
        ids = [draw.randint(0, 70_000) for _ in range(length)]
        first = draw.randint(0, length)
        records.append({
            "input_ids": ids,
            "labels": [-100] * first + ids[first:],
            "loss_mask": [position >= first for position in range(length)],
            "weights": [draw.choice([0.5, 1.0, -0.0, 3.0e10, 1 / 3]) for _ in ids],
            "rank": draw.randint(-5, 5) * 10**draw.randint(0, 12),
            "score": draw.choice([0.25, -1.5, 7.0]),
            "name": draw.choice(["", "é", "a,\"b\"\n", f"n{number}"]),
            "places": [draw.randint(0, 9) for _ in range(draw.randint(0, 4))],
            "attention_mask": [draw.random() > 0.1 for _ in ids],
            "note": {"not": "carried"},
        })
    return records


def without_padding(record):
    kept = [i for i, real in enumerate(record["attention_mask"]) if real]
    return {**record, **{name: [record[name][i] for i in kept] for name in ("input_ids", *PER_TOKEN)}}


def value_key(value):
    """What a value enters the fingerprint as (docs/formats.md)."""
    if isinstance(value, (bool, int)):
        return int(value) & MASK
    if value == int(value) and abs(value) <= 2**53 and not (value == 0 and np.signbit(value)):
        return int(value) & MASK
    return int(np.float64(value).view(np.uint64))


# XXH3-64 of the columns' names, from the reference implementation.
COLUMN_HASHES = {
    "input_ids": 0x4d36b1c94afdf874,
    "labels": 0x115917b0083001d,
    "loss_mask": 0x2161a0234c4f2597,
    "weights": 0x6cc94573ff53c71,
    "rank": 0x5ffafa6f544ad77,
    "score": 0xfb02a5ef6673b1a3,
}


def fingerprint(records):
    """32 hex digits, by the definition."""
    lanes = [0, 0]
    column_keys = {name: keys(18, value) for name, value in COLUMN_HASHES.items()}
    position_keys = keys(17, np.arange(200))
    for ordinal, record in enumerate(records):
        if not record["input_ids"]:
            continue
        record_keys = keys(16, ordinal)
        for name, column_key in column_keys.items():
            values = record[name] if isinstance(record[name], list) else [record[name]]
            for lane in (0, 1):
                total = sum(int(position_keys[lane][i]) * (value_key(value) + 1) for i, value in enumerate(values))
                lanes[lane] += int(record_keys[lane]) * int(column_key[lane]) * total
    return f"{lanes[1] & MASK:016x}{lanes[0] & MASK:016x}"


def check_values(out, records):
    """Every value of the rows against the record that seq_source names."""
    manifest = json.loads((out / "manifest.json").read_text())
    names = {column["name"]: column for column in manifest["columns"]}
    loss_tokens = 0
    for entry in manifest["shards"]:
        shard = out / entry["folder"]
        arrays = {name: np.load(shard / f"{name}.npy") for name in
                  ("input_ids", "row_offsets", "seq_lengths", "seq_source", *names)}
        slots = np.load(shard / "seq_slots.npy") if (shard / "seq_slots.npy").exists() else arrays["seq_lengths"]
        added = np.load(shard / "seq_added.npy") if (shard / "seq_added.npy").exists() else np.zeros(len(slots), np.uint8)
        offsets = {name: np.load(shard / f"{name}_offsets.npy") for name in names if names[name]["per"] in ("list", "text")}
        for row in range(entry["rows"]):
            outside = np.ones(manifest["row_tokens"], bool)
            at = 0
            for segment in range(arrays["row_offsets"][row], arrays["row_offsets"][row + 1]):
                _, number, first = arrays["seq_source"][segment]
                record = records[number]
                begin = at + (added[segment] & 1)
                tokens = arrays["seq_lengths"][segment] - (added[segment] & 1) - (added[segment] >> 1)
                place, source = slice(begin, begin + tokens), slice(first, first + tokens)
                outside[place] = False
                assert arrays["input_ids"][row, place].tolist() == record["input_ids"][source]
                for name, column in names.items():
                    if column["per"] == "token":
                        found, expected = arrays[name][row, place].tolist(), [value + 0 for value in record[name][source]]
                        assert found == expected, (name, number, found, expected)
                    elif column["per"] == "sequence":
                        assert arrays[name][segment] == record[name], (name, number)
                    else:
                        part = arrays[name][offsets[name][segment]:offsets[name][segment + 1]]
                        expected = record[name].encode() if column["per"] == "text" else bytes(record[name])
                        assert part.astype(np.uint8).tobytes() == expected, (name, number)
                loss_tokens += int((arrays["labels"][row, place] != -100).sum())
                at += slots[segment]
            for name, column in names.items():
                if column["per"] == "token":
                    assert (arrays[name][row, outside] == FILL.get(name, 0)).all(), (name, row)
    assert manifest["loss"]["column"] == "labels" and manifest["loss"]["tokens"] == loss_tokens
    source_loss = sum(label != -100 for record in records for label in record["labels"])
    assert manifest["loss"]["source_tokens"] == source_loss
    removed = sum(count["loss_tokens"] for cause, count in manifest["removed"].items() if cause != "padding")
    assert loss_tokens + removed == source_loss
    return manifest


POLICIES = [
    ["--overlong", "truncate"],
    ["--overlong", "truncate", "--truncate-side", "start", "--append-eos", "--eos-id", "5", "--prepend-bos", "--bos-id", "6"],
    ["--overlong", "split", "--split-min-tokens", "9", "--segment-multiple", "4"],
    ["--overlong", "drop", "--rows-multiple", "9", "--tail", "drop", "--min-tokens", "2"],
    ["--packer", "concat", "--partition-tokens", "3000", "--shard-bytes", "20K"],
    ["--packer", "concat", "--overlong", "truncate", "--truncate-side", "start"],
    ["--overlong", "drop", "--packer", "sequential", "-K", "3"],
]

FAULTS = [
    ('{"input_ids": [1, 2], "labels": [1]}', "line 1,001: labels has 1 values for 2 token ids; --columns labels:list"),
    ('{"input_ids": [1, 2]}', "line 1,001: no column 'labels', which the records before have"),
    ('{"input_ids": [1, 2], "labels": null}', "line 1,001: null in the column 'labels'"),
    ('{"input_ids": [1, 2], "labels": [1, null]}', "line 1,001: labels[1] is null; expected a number"),
    ('{"input_ids": [1, 2], "labels": [1, "2"]}', "line 1,001: labels[1] is a string; expected a number"),
    ('{"input_ids": [1, 2], "labels": 3}', "line 1,001: labels is 3; expected a list of numbers"),
    ('{"input_ids": [1], "labels": [18446744073709551615]}', "line 1,001: labels[0] is 18446744073709551615; expected a number"),
    ('{"input_ids": [1], "labels": [1], "labels": [1]}', "line 1,001: the column 'labels' appears twice"),
]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "records.jsonl"
        records = make_records(400, 11)
        source.write_text("".join(json.dumps(record) + "\n" for record in records))
        kept = [without_padding(record) for record in records]

        scanned = json.loads(run(TOOL, "scan", source, "--json"))
        assert scanned["fingerprint"] == fingerprint(kept), (scanned["fingerprint"], fingerprint(kept))
        assert scanned["not_carried"] == ["name", "note", "places"]

        for number, policy in enumerate(POLICIES):
            out = folder / f"out-{number}"
            run(TOOL, "pack", source, "-o", out, "-L", 100, "-q", "--columns", "aligned,name,places", *policy)
            manifest = check_values(out, kept)
            types = {column["name"]: column["dtype"] for column in manifest["columns"]}
            assert types == {"labels": "i32", "loss_mask": "u8", "name": "u8", "places": "u8", "rank": "i64", "score": "f32",
                             "weights": "f64"}, types
            assert manifest["not_carried"] == ["note"]
            run(TOOL, "verify", out, "--against", source)

        # Every carried value is under the fingerprint: a changed one, hashes put right, is found.
        column = next((folder / "out-0").glob("shard-*/labels.npy"))
        stored = bytearray(column.read_bytes())
        stored[200] ^= 1
        column.write_bytes(stored)
        assert "labels.npy" in run(TOOL, "verify", folder / "out-0", expect=1)

        # Threads, and a spool that is read again, change nothing.
        for threads in (1, 3):
            run(TOOL, "pack", source, "-o", folder / f"t{threads}", "-L", 100, "-q", "--overlong", "split", "--threads", threads)
        assert run("diff", "-r", folder / "t1", folder / "t3") == ""

        choices = {"none": [], "all": ["labels", "loss_mask", "name", "places", "rank", "score", "weights"], "name,rank": ["name", "rank"],
                   "loss_mask:token:minus100": ["loss_mask"]}
        for choice, expected in choices.items():
            out = folder / "choice"
            run(TOOL, "pack", source, "-o", out, "-L", 100, "-q", "--overlong", "drop", "--force", "--columns", choice)
            assert [column["name"] for column in json.loads((out / "manifest.json").read_text())["columns"]] == expected, choice
        for choice, message in {"lables": "did you mean 'labels'?", "note": "it holds neither numbers", "labels:sequence": "not of kind",
                                "all,none": "stands first", "labels:word": "says 'word'", "input_ids": "no such column"}.items():
            assert message in run(TOOL, "pack", source, "-o", folder / "x", "-L", 100, "--columns", choice, expect=2), choice

        for line, message in FAULTS:
            bad = folder / "bad.jsonl"
            # The first thousand records settle the kinds.
            bad.write_text('{"input_ids": [1], "labels": [1]}\n' * 1000 + line + "\n")
            found = run(TOOL, "pack", bad, "-o", folder / "x", "-L", 100, expect=3)
            assert message in found, (message, found)
            assert not (folder / "x").exists() and not (folder / "x.partial").exists()
        # In the first records a null leaves the column out, and says so.
        (folder / "few.jsonl").write_text('{"input_ids": [1], "labels": [1]}\n{"input_ids": [2], "labels": null}\n')
        assert "not carried along: labels" in run(TOOL, "pack", folder / "few.jsonl", "-o", folder / "few", "-L", 100)


main()
