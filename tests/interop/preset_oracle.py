"""What each preset must say of a row, from the source's records and the source map alone: an oracle that shares nothing with the
tool. Also the sources that the tests pack. Needs no packages."""
import ast
import json
import random
import struct
import subprocess

L, PAD, EOS, NONE = 64, 7, 2, -100


def run(*command, expect=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == expect, f"{command}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}"
    return done


def npy(path):
    """The values of a .npy file and its shape; small ones, without numpy."""
    data = path.read_bytes()
    size = struct.unpack_from("<H", data, 8)[0]
    head = ast.literal_eval(data[10:10 + size].decode())
    code = {"|u1": "B", "<i4": "i", "<i8": "q", "<u2": "H", "<u4": "I", "<f4": "f"}[head["descr"]]
    values = [value for value, in struct.iter_unpack("<" + code, data[10 + size:])]
    return values, head["shape"]


# ---- sources ------------------------------------------------------------------------------------------------------------------

def sequences(kind, count=400, longest=L, least=1, seed=5, highest=60_000):
    """Records with ids and what `kind` has beside them."""
    draw = random.Random(seed)
    records = []
    for number in range(count):
        n = draw.choice([least, longest, draw.randint(least, longest), draw.randint(least, max(least, longest // 5))])
        ids = [draw.randint(3, 70_000 if kind == "wide" else highest) for _ in range(n)]
        record = {"input_ids": ids}
        bits = [draw.randint(0, 1) for _ in ids]
        if kind in ("labels", "extras"):
            record["labels"] = [token if bit else NONE for token, bit in zip(ids, bits)]
        if kind == "other labels":
            record["labels"] = [token + 1 if bit else NONE for token, bit in zip(ids, bits)]
        if kind == "mask":
            record["loss_mask"] = bits
        if kind == "extras":
            record.update(token_type_ids=[number % 2] * n, score=number * 3, name=f"n{number}")
        records.append(record)
    return records


def write_jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


# ---- what a preset must say of a row ------------------------------------------------------------------------------------------

def labels_of(record):
    """A label for every token of a record."""
    if "labels" in record:
        return record["labels"]
    if "loss_mask" in record:
        return [token if bit else NONE for token, bit in zip(record["input_ids"], record["loss_mask"])]
    return record["input_ids"]


def hidden(labels):
    return [NONE] + labels[1:]


def shifted(labels):
    return labels[1:] + [NONE]


def padded(values, fill):
    return values + [fill] * (L - len(values))


def expected_row(preset, segments, has_labels):
    """`segments`: the ids of each and its labels. As the documentation of the preset says, column by column."""
    ids = [token for one, _ in segments for token in one]
    positions = [i for one, _ in segments for i in range(len(one))]
    numbers = [s + 1 for s, (one, _) in enumerate(segments) for _ in one]
    plain = [label for _, labels in segments for label in labels]
    first_hidden = [label for _, labels in segments for label in hidden(labels)]
    next_ones = [label for _, labels in segments for label in shifted(labels)]
    lengths = [len(one) for one, _ in segments]
    rest = L - len(ids)
    if preset == "hf":
        return {"input_ids": padded(ids, PAD), "position_ids": padded(positions, 0), "labels": padded(first_hidden, NONE)}
    if preset == "mlm":
        return {"input_ids": padded(ids, PAD), "segment_ids": padded(numbers, 0), "position_ids": padded(positions, 0)}
    if preset == "trl":
        return {"input_ids": ids, **({"labels": plain} if has_labels else {}), "seq_lengths": lengths}
    if preset == "llamafactory":
        return {"input_ids": padded(ids, PAD), "attention_mask": padded(numbers, 0), "position_ids": padded(positions, 0),
                "labels": padded(first_hidden, NONE)}
    if preset == "axolotl":
        return {"input_ids": ids, "position_ids": positions, "labels": first_hidden}
    if preset == "torchtune":
        return {"tokens": padded(ids, PAD), "labels": padded(next_ones, NONE), "input_pos": padded(positions, 0),
                "seq_lens": lengths + ([rest] if rest else [])}
    if preset == "maxtext":
        targets = [0 if label == NONE else label for label in next_ones]
        of_targets = [0 if label == NONE else number for label, number in zip(next_ones, numbers)]
        return {"inputs": padded(ids, PAD), "inputs_position": padded(positions, 0), "inputs_segmentation": padded(numbers, 0),
                "targets": padded(targets, 0), "targets_position": padded(positions, 0),
                "targets_segmentation": padded(of_targets, 0)}
    if preset == "bridge":
        starts = [sum(lengths[:s]) for s in range(len(lengths))]
        return {"input_ids": ids, "loss_mask": [int(label != NONE) for label in next_ones], "seq_start_id": starts}
    raise KeyError(preset)


# ---- outputs ------------------------------------------------------------------------------------------------------------------

def segments_of_shards(folder, records):
    """Row by row, all shards: the source's ids and labels of each segment, by the source map."""
    manifest = json.loads((folder / ".shardpack/manifest.json").read_text())
    for shard in manifest["shards"]:
        here = folder / ".shardpack" / shard["folder"]
        (offsets, _), (lengths, _), (source, shape) = (npy(here / f"{name}.npy") for name in
                                                      ("row_offsets", "seq_lengths", "seq_source"))
        added = npy(here / "seq_added.npy")[0] if (here / "seq_added.npy").exists() else [0] * len(lengths)
        assert shape == (len(lengths), 3) and offsets[-1] == len(lengths)
        for begin, end in zip(offsets, offsets[1:]):
            row = []
            for s in range(begin, end):
                _, record, first = source[3 * s:3 * s + 3]
                n = lengths[s] - (added[s] == 2)
                assert added[s] in (0, 2)
                ids, labels = records[record]["input_ids"][first:first + n], labels_of(records[record])[first:first + n]
                if added[s]:
                    has_labels = "labels" in records[record] or "loss_mask" in records[record]
                    ids, labels = ids + [EOS], labels + [NONE if has_labels else EOS]
                row.append((ids, labels))
            yield row
