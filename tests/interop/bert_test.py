#!/usr/bin/env python3
"""BERT pre-training data from outside: --positions-columns, and every field of --for bert against bert_oracle.py.
Usage: bert_test.py SHARDPACK CASE"""
import collections
import json
import pathlib
import random
import struct
import sys
import tempfile

import preset_oracle
from bert_oracle import FIELDS, ROW, cut, load, make_records, reference_row, shards_of

TOOL, CASE = sys.argv[1:3]


def run(*command, expect=0):
    done = preset_oracle.run(*command, expect=expect)
    return done.stdout + done.stderr


def padded(records, seed):
    """The same records with padding somewhere, marked by attention_mask, and lists filled up with zeros of weight 0."""
    draw, out = random.Random(seed), []
    for record in records:
        length = len(record["input_ids"])
        places = sorted(draw.sample(range(length + 9), length))
        mask = [0] * (length + 9)
        ids, types = [7] * len(mask), [1] * len(mask)
        for i, place in enumerate(places):
            mask[place], ids[place], types[place] = 1, record["input_ids"][i], record["token_type_ids"][i]
        fill = draw.randint(0, 3)
        out.append({
            **record, "input_ids": ids, "token_type_ids": types, "attention_mask": mask,
            "masked_lm_positions": [places[i] for i in record["masked_lm_positions"]] + [places[0]] * fill,
            "masked_lm_ids": record["masked_lm_ids"] + [0] * fill,
            "masked_lm_weights": [1.0] * len(record["masked_lm_ids"]) + [0.0] * fill,
        })
    return out


def write_jsonl(path, records):
    path.parent.mkdir(exist_ok=True)
    preset_oracle.write_jsonl(path, records)
    return path


def check_fields(out, records, load, depth=None, predictions=None):
    """Every field of every row, and that each token of each record is in the rows as often as it should be."""
    placed = collections.Counter()
    most = 0
    for manifest, entry, _, rows in shards_of(out):
        width, segments = manifest["widths"]["entries"], manifest["widths"]["segments"]
        assert depth is None or segments == depth
        assert predictions is None or width == predictions + depth
        arrays = load(entry)
        assert tuple(sorted(arrays)) == tuple(sorted(FIELDS))
        assert entry["rows"] == len(arrays["input_ids"])
        for row, members in enumerate(rows):
            parts = [cut(records[number], first, tokens) for number, first, tokens, _ in members]
            expected = reference_row(parts, width, segments)
            most = max(most, sum(len(part["masked_lm_ids"]) for part in parts))
            for name in FIELDS:
                found = arrays[name][row]
                assert found == (expected[name] if members else [0] * len(found)), (row, name, found, expected[name])
            placed.update((number, first + i) for number, first, tokens, _ in members for i in range(tokens))
    assert placed and set(placed.values()) == {1}
    return placed, most, width, segments


def load_npy(out):
    names = lambda entry: [file["name"] for file in entry["trainer_files"]]
    assert all(b"'<i4'" in path.read_bytes()[:64] for path in out.glob("*.npy"))
    return lambda entry: {name.split(".")[1]: load(out / name) for name in names(entry)}


def load_parquet(out):
    import pyarrow.parquet

    def columns(entry):
        table = pyarrow.parquet.read_table(out / entry["trainer_files"][0]["name"])
        assert all(str(field.type.value_type) == "int32" for field in table.schema)
        return {name: table[name].to_pylist() for name in table.column_names}
    return columns


def fields(folder):
    """Every field, in both containers, for several packers; widths by the data and by -K and --max-predictions."""
    records = make_records(300, 1)
    source = write_jsonl(folder / "in" / "a.jsonl", records)
    all_tokens = sum(len(record["input_ids"]) for record in records)
    for number, options in enumerate([["-K", 3], ["-K", 3, "--max-predictions", 10], ["--packer", "nnlshp"], [],
                                      ["--packer", "sequential", "--shard-bytes", "9K", "--partition-tokens", 2000],
                                      ["-K", 4, "--rows-multiple", 8, "--tail", "fill"]]):
        for container in ("npy", "parquet"):
            out = folder / f"out-{number}-{container}"
            run(TOOL, "pack", source, "-o", out, "-L", ROW, "-q", "--for", "bert", "--as", container, *options)
            depth = 3 if options[:1] == ["-K"] and options[1] == 3 or "nnlshp" in options else 4 if "-K" in options else None
            placed, most, width, segments = check_fields(out, records, (load_npy if container == "npy" else load_parquet)(out), depth,
                                                         10 if "--max-predictions" in options else None)
            assert len(placed) == all_tokens
            if "--max-predictions" not in options:
                assert width == max(most, segments)  # no wider than the widest row
            run(TOOL, "verify", out, "--against", source)


def cuts(folder):
    """Truncated at either end, split, dropped: masked tokens go where their tokens go, and what went is counted."""
    records = make_records(200, 2, longest=150)
    source = write_jsonl(folder / "in" / "a.jsonl", records)
    masked = sum(len(record["masked_lm_ids"]) for record in records)
    for number, policy in enumerate([["truncate"], ["truncate", "--truncate-side", "start"], ["split"], ["drop"],
                                     ["split", "--split-min-tokens", "20"], ["truncate", "--packer", "concat"]]):
        bert, native = folder / f"bert-{number}", folder / f"native-{number}"
        options = ["-L", ROW, "-q", "--overlong", *policy]
        run(TOOL, "pack", source, "-o", bert, "--for", "bert", *options)
        placed, *_ = check_fields(bert, records, load_npy(bert))
        run(TOOL, "pack", source, "-o", native, "--positions-columns", "masked_lm_positions", *options)
        manifest = check_native(native, records)
        assert manifest["loss"] == {"column": "masked_lm_positions", "source_tokens": masked,
                                    "tokens": sum((number, place) in placed for number, record in enumerate(records)
                                                  for place in record["masked_lm_positions"])}
        removed = {cause: count["loss_tokens"] for cause, count in manifest["removed"].items()}
        assert sum(removed.values()) + manifest["loss"]["tokens"] == masked
        assert (masked > manifest["loss"]["tokens"]) == (policy not in (["split"], ["truncate", "--packer", "concat"])), policy
        for out in (bert, native):
            run(TOOL, "verify", out, "--against", source)


def check_native(out, records, added=()):
    """The ragged lists of the native layout: slots of the row, values beside them."""
    for manifest, _, shard, rows in shards_of(out):
        columns = {column["name"]: column for column in manifest["columns"]}
        for name in ("masked_lm_positions", "masked_lm_ids"):
            assert columns[name]["per"] == "list" and columns[name]["places"] == "masked_lm_positions"
        ids = load(shard / "input_ids.npy")
        slots_path = shard / "seq_slots.npy"
        slots = load(slots_path if slots_path.exists() else shard / "seq_lengths.npy")
        lists = {name: (load(shard / f"{name}.npy"), load(shard / f"{name}_offsets.npy")) for name in columns
                 if columns[name].get("places")}
        segment = 0
        for row, members in enumerate(rows):
            at = 0
            for number, first, tokens, flags in members:
                part = cut(records[number], first, tokens)
                begin = at + (flags & 1)
                assert ids[row][begin:begin + tokens] == part["input_ids"]
                values = {name: array[offsets[segment]:offsets[segment + 1]] for name, (array, offsets) in lists.items()}
                assert values["masked_lm_positions"] == [place + begin for place in part["masked_lm_positions"]]
                assert values["masked_lm_ids"] == part["masked_lm_ids"]
                at += int(slots[segment])
                segment += 1
    return manifest


def native(folder):
    """Added tokens and gaps between segments shift positions too; unpack undoes it all; a changed slot is found."""
    records = make_records(150, 3)
    source = write_jsonl(folder / "in" / "a.jsonl", records)
    out = folder / "out"
    run(TOOL, "pack", source, "-o", out, "-L", 72, "-q", "--positions-columns", "masked_lm_positions", "--append-eos", "--eos-id", 9,
        "--prepend-bos", "--bos-id", 8, "--segment-multiple", 4)
    check_native(out, records)
    run(TOOL, "verify", out, "--against", source)
    run(TOOL, "unpack", out, "-o", folder / "back", "-q")
    back = [json.loads(line) for line in (folder / "back" / "a.jsonl").read_text().splitlines()]
    assert [{**line} for line in back] == [{name: record[name] for name in line} for record, line in zip(records, back)]
    assert len(back) == len(records) and set(back[0]) == set(records[0])

    file = next(out.glob("shard-*/masked_lm_positions.npy"))
    stored = bytearray(file.read_bytes())
    for change, message in ((1, "fingerprint"), (60, "has no token of it")):
        damaged = bytearray(stored)
        damaged[-4] ^= change
        file.write_bytes(damaged)
        assert message in run(TOOL, "verify", out, expect=1), change
    file.write_bytes(stored)

    # Pieces come back as one record when all of them are there.
    long = make_records(40, 4, longest=200)
    source = write_jsonl(folder / "long" / "a.jsonl", long)
    run(TOOL, "pack", source, "-o", folder / "split", "-L", ROW, "-q", "--positions-columns", "masked_lm_positions", "--overlong", "split")
    run(TOOL, "unpack", folder / "split", "-o", folder / "whole", "-q")
    back = [json.loads(line) for line in (folder / "whole" / "a.jsonl").read_text().splitlines()]
    assert [line["masked_lm_positions"] for line in back] == [record["masked_lm_positions"] for record in long]
    assert [line["masked_lm_ids"] for line in back] == [record["masked_lm_ids"] for record in long]


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in ("manifest.json",)}


def formats_agree(folder):
    """JSON lines, Arrow and Parquet, with and without padding, give equal bytes; padding of tokens and of lists changes nothing."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet
    records = make_records(200, 5)
    plain = {}
    for kind, made in (("plain", records), ("padded", padded(records, 6))):
        table = pa.Table.from_pylist(made)
        inputs = {"jsonl": write_jsonl(folder / kind / "a.jsonl", made)}
        inputs["feather"], inputs["parquet"] = folder / kind / "a.feather", folder / kind / "a.parquet"
        inputs["stream"] = folder / kind / "a.arrow"
        pyarrow.feather.write_feather(table, inputs["feather"], compression="uncompressed", chunksize=64)
        pyarrow.parquet.write_table(table, inputs["parquet"], row_group_size=50)
        with pa.OSFile(str(inputs["stream"]), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=70)
        trees = {}
        for name, source in inputs.items():
            for preset in ("bert", "native"):
                out = folder / f"{kind}-{name}-{preset}"
                run(TOOL, "pack", source, "-o", out, "-L", ROW, "-q", "-K", 3, "--for", preset, "--positions-columns",
                    "masked_lm_positions")
                run(TOOL, "verify", out, "--against", source)
                trees[name, preset] = tree(out)
        for preset in ("bert", "native"):
            for name in inputs:
                assert trees[name, preset] == trees["jsonl", preset], (kind, name, preset)
        plain[kind] = {name: data for name, data in trees["jsonl", "bert"].items() if name.startswith("train-")}
    assert plain["plain"] == plain["padded"]


def write_npy(path, descr, rows):
    """Rows of equal lengths, or plain numbers, without numpy."""
    code = {"<i4": "<i", ">i2": ">h", "|u1": "B", "<i8": "<q", "<f4": "<f"}[descr]
    shape = (len(rows), len(rows[0])) if isinstance(rows[0], list) else (len(rows),)
    values = [value for row in rows for value in row] if len(shape) == 2 else rows
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
                     + b"".join(struct.pack(code, value) for value in values))
    return path


def filled(record, tokens, entries):
    """As published data have it: sequences padded to one length at the end, lists filled up with zeros of weight 0."""
    room, fill = tokens - len(record["input_ids"]), entries - len(record["masked_lm_ids"])
    return {
        **record, "input_ids": record["input_ids"] + [0] * room, "token_type_ids": record["token_type_ids"] + [0] * room,
        "attention_mask": [1] * len(record["input_ids"]) + [0] * room,
        "masked_lm_positions": record["masked_lm_positions"] + [0] * fill, "masked_lm_ids": record["masked_lm_ids"] + [0] * fill,
        "masked_lm_weights": [1.0] * len(record["masked_lm_ids"]) + [0.0] * fill,
    }


TYPES = {"input_ids": "<i4", "attention_mask": "|u1", "token_type_ids": "|u1", "masked_lm_positions": "<i4", "masked_lm_ids": "<i8",
         "masked_lm_weights": "<f4", "next_sentence_labels": "|u1"}


def write_arrays(folder, records, types=TYPES):
    """An array for every field: a.npy has the ids."""
    for name in records[0]:
        write_npy(folder / ("a.npy" if name == "input_ids" else f"a.{name}.npy"), types[name], [record[name] for record in records])
    return folder


def arrays(folder):
    """The arrays of published data, with padding at the end or anywhere, give the bytes that the same data give as JSON lines; what
    fills the lists up reaches no row of the preset."""
    records = make_records(150, 9)
    made = {"filled": [filled(record, ROW, 12) for record in records], "scattered": [filled(record, ROW, 12) for record in records]}
    draw = random.Random(10)
    for record in made["scattered"]:  # the padding comes anywhere, and some masked tokens are in it
        order = sorted(range(ROW), key=lambda i: (i if record["attention_mask"][i] else draw.randrange(ROW)))
        for name in ("input_ids", "token_type_ids", "attention_mask"):
            record[name] = [record[name][i] for i in order]
        record["masked_lm_positions"] = [order.index(place) for place in record["masked_lm_positions"]]
        record["attention_mask"][record["masked_lm_positions"][0]] = draw.randrange(2)
    plain = folder / "plain"
    run(TOOL, "pack", write_jsonl(folder / "in" / "a.jsonl", records), "-o", plain, "-L", ROW, "-q", "-K", 3, "--for", "bert")
    for kind, padded_records in made.items():
        inputs = [write_arrays(folder / kind, padded_records), write_jsonl(folder / f"{kind}-lines" / "a.jsonl", padded_records)]
        flat = {**TYPES, "masked_lm_positions": ">i2", "token_type_ids": "<i8"}
        inputs += [write_arrays(folder / f"{kind}-big", padded_records, flat), folder / kind / "a.npy"]
        for preset in ("bert", "native"):
            trees = []
            for number, source in enumerate(inputs):
                out = folder / f"{kind}-{number}-{preset}"
                run(TOOL, "pack", source, "-o", out, "-L", ROW, "-q", "-K", 3, "--for", preset, "--positions-columns",
                    "masked_lm_positions")
                run(TOOL, "verify", out, "--against", source)
                trees.append(tree(out))
            assert all(one == trees[1] for one in trees), (kind, preset)
            manifests = [json.loads(next((folder / f"{kind}-{number}-{preset}").rglob("manifest.json")).read_text())
                         for number in range(len(inputs))]
            for key in ("columns", "loss", "removed", "fingerprint", "widths"):
                assert all(one.get(key) == manifests[1].get(key) for one in manifests), (kind, preset, key)
            assert (manifests[0]["removed"]["padding"]["loss_tokens"] > 0) == (kind == "scattered")
            if (kind, preset) == ("filled", "bert"):
                assert {name: data for name, data in trees[0].items() if name.startswith("train-")} == {
                    name: data for name, data in tree(plain).items() if name.startswith("train-")}
    # Tokens in one row, cut by lengths: lists are rows for each sequence all the same.
    cut_by_lengths = [{name: values for name, values in filled(record, len(record["input_ids"]), 12).items() if name != "attention_mask"}
                      for record in records]
    for name in cut_by_lengths[0]:
        per_token = name in ("input_ids", "token_type_ids")
        values = [record[name] for record in cut_by_lengths]
        write_npy(folder / "flat" / ("a.npy" if name == "input_ids" else f"a.{name}.npy"), TYPES[name],
                  [value for row in values for value in row] if per_token else values)
    write_npy(folder / "flat" / "a.lengths.npy", "<i8", [len(record["input_ids"]) for record in records])
    for preset in ("bert", "native"):
        sources = folder / "flat", write_jsonl(folder / "flat-lines" / "a.jsonl", cut_by_lengths)
        for source in sources:
            run(TOOL, "pack", source, "-o", folder / f"{source.parent.name}-{source.name}-{preset}", "-L", 30, "-q", "--for", preset,
                "--positions-columns", "masked_lm_positions", "--overlong", "split")
        a, b = (tree(folder / f"{source.parent.name}-{source.name}-{preset}") for source in sources)
        assert a == b
    # Nobody says what fills the lists up.
    (folder / "filled" / "a.masked_lm_weights.npy").unlink()
    text = run(TOOL, "pack", folder / "filled", "-o", folder / "none", "-L", ROW, "-q", "--for", "bert", expect=3)
    first = next(i for i, record in enumerate(records) if len(record["masked_lm_ids"]) < 12)
    entry = len(records[first]["masked_lm_ids"])
    assert f"a.masked_lm_positions.npy: record {first}: masked_lm_positions[{entry}] is 0 behind" in text, text
    assert "masked_lm_weights" in text
    run(TOOL, "scan", folder / "filled")  # which carries no lists


def weights(folder):
    """An entry counts as a loss token where its weight is not 0, whatever the weights are stored as, wherever it is asked: of the
    sources, of the rows, of what was removed, for --drop-unlabeled, and of batches of rows."""
    draw, records = random.Random(12), []
    for record in make_records(120, 11, longest=100):
        record = filled(record, 110, 18)
        places = list(range(110))
        draw.shuffle(places)  # padding comes anywhere
        order = sorted(range(110), key=lambda i: places[i] if not record["attention_mask"][i] else i)
        for name in ("input_ids", "token_type_ids", "attention_mask"):
            record[name] = [record[name][i] for i in order]
        record["masked_lm_positions"] = [order.index(place) for place in record["masked_lm_positions"]]
        record["attention_mask"][record["masked_lm_positions"][0]] = draw.randrange(2)  # and over some masked tokens
        share = draw.choice([0, 0, 0.3, 1])  # of those that count
        record["masked_lm_weights"] = [draw.choice([1.0, -0.5, 2.0]) if weight and draw.random() < share else draw.choice([0.0, -0.0])
                                       for weight in record["masked_lm_weights"]]
        records.append(record)
    tokens = [sum(record["attention_mask"]) for record in records]

    def counted(number, first=0, count=1000, padding=False):
        record, mask = records[number], records[number]["attention_mask"]
        entries = [place for place, weight in zip(record["masked_lm_positions"], record["masked_lm_weights"]) if weight != 0]
        if padding:
            return sum(not mask[place] for place in entries)
        return sum(mask[place] and first <= sum(mask[:place]) < first + count for place in entries)

    all_counted = sum(map(counted, range(len(records))))
    in_padding = sum(counted(number, padding=True) for number in range(len(records)))
    assert all_counted and in_padding
    inputs = [write_jsonl(folder / "lines" / "a.jsonl", records), write_arrays(folder / "arrays", records)]
    try:
        import pyarrow as pa
        import pyarrow.feather
        import pyarrow.parquet
        table = pa.Table.from_pylist(records)
        for halves in (False, True):
            if halves:
                at = table.column_names.index("masked_lm_weights")
                import numpy as np
                values = pa.array(np.array([weight for record in records for weight in record["masked_lm_weights"]], np.float16))
                lists = pa.FixedSizeListArray.from_arrays(values, 18)
                table = table.set_column(at, "masked_lm_weights", lists)
            for name in ("uncompressed", "lz4"):
                inputs.append(folder / f"{halves}-{name}.feather")
                pyarrow.feather.write_feather(table, inputs[-1], compression=name, chunksize=50)
        inputs.append(folder / "a.parquet")
        pyarrow.parquet.write_table(pa.Table.from_pylist(records), inputs[-1], row_group_size=50)
    except ModuleNotFoundError:
        pass

    positions = ["--positions-columns", "masked_lm_positions", "-q"]
    policies = [["-L", 128], ["-L", 40, "--overlong", "truncate"], ["-L", 40, "--overlong", "truncate", "--truncate-side", "start"],
                ["-L", 40, "--overlong", "split", "--split-min-tokens", "9"], ["-L", 60, "--overlong", "drop"],
                ["-L", 40, "--packer", "concat", "--prepend-bos", "--bos-id", 5]]
    for policy in policies:
        for drop in ([], ["--drop-unlabeled"]):
            manifests = []
            for number, source in enumerate(inputs):
                out = folder / "out"
                run(TOOL, "pack", source, "-o", out, "--force", *positions, *policy, *drop)
                run(TOOL, "verify", out, "--against", source)
                manifests.append(json.loads((out / "manifest.json").read_text()))
                for key in ("loss", "removed", "fingerprint"):
                    assert manifests[-1][key] == manifests[0][key], (source, policy, drop)
            manifest = manifests[0]
            members = [member for *_, rows in shards_of(out) for row in rows for member in row]
            assert manifest["loss"] == {"column": "masked_lm_weights", "source_tokens": all_counted,
                                        "tokens": sum(counted(number, first, count) for number, first, count, _ in members)}
            removed = collections.Counter(padding=in_padding)
            lines = (out / "removed.csv").read_text().splitlines()[1:] if (out / "removed.csv").exists() else []
            for line in lines:
                _, number, first, count, cause = line.split(",")
                removed[cause] += counted(int(number), int(first), int(count))
            assert {cause: count["loss_tokens"] for cause, count in manifest["removed"].items() if count["loss_tokens"]} == {
                cause: count for cause, count in removed.items() if count}, policy
            there = {number for number, *_ in members}
            if not drop:
                continue
            if "truncate" in policy:
                kept = lambda number: (tokens[number] - 40 if "start" in policy else 0, 40)
                assert there == {number for number in range(len(records)) if counted(number, max(0, kept(number)[0]), 40)}
            elif "split" not in policy and "drop" not in policy:
                assert there == {number for number in range(len(records)) if counted(number)}
            assert manifest["removed"]["unlabeled"]["sequences"] > 10
    # Rows of a packed dataset are counted by what they hold.
    run(TOOL, "batch", folder / "out", "-o", folder / "rows", "--batch-size", 1, "--world", 1)
    assert json.loads((folder / "rows" / "manifest.json").read_text())["label_tokens"] == manifest["loss"]["tokens"]
    run(TOOL, "verify", folder / "rows", "--against", folder / "out")
    # Nothing is taken for granted: a weight that is changed, with the hash made to match, is found.
    file = next((folder / "out").glob("shard-*/masked_lm_weights.npy"))
    stored = bytearray(file.read_bytes())
    file.write_bytes(stored[:-4] + struct.pack("<f", 1.0 if stored[-4:] == bytes(4) else 0.0))
    assert "loss tokens, the manifest says" in run(TOOL, "verify", folder / "out", expect=1)


def partners(folder):
    """Lists that go with the positions by their name or by equal lengths are cut with them; others stay whole."""
    records = make_records(60, 7, longest=120)
    for number, record in enumerate(records):
        count = len(record["masked_lm_ids"])
        record["difficulty"] = [place / 2 for place in record["masked_lm_positions"]]
        record["tags"] = list(range(number % 3))
    source = write_jsonl(folder / "in" / "a.jsonl", records)
    out = folder / "out"
    run(TOOL, "pack", source, "-o", out, "-L", ROW, "-q", "--columns", "aligned,tags", "--positions-columns", "masked_lm_positions", "--overlong",
        "truncate")
    manifest = check_native(out, records)
    places = {column["name"]: column.get("places") for column in manifest["columns"]}
    assert places["difficulty"] == "masked_lm_positions" and places["tags"] is None, places
    for _, _, shard, rows in shards_of(out):
        values, offsets = load(shard / "difficulty.npy"), load(shard / "difficulty_offsets.npy")
        for segment, (number, first, tokens, _) in enumerate(member for row in rows for member in row):
            kept = [place / 2 for place in records[number]["masked_lm_positions"] if first <= place < first + tokens]
            assert values[offsets[segment]:offsets[segment + 1]] == kept
    run(TOOL, "verify", out, "--against", source)
    run(TOOL, "pack", source, "-o", folder / "own", "-L", ROW, "-q", "--columns", "aligned,tags,difficulty:list", "--positions-columns",
        "masked_lm_positions", "--overlong", "truncate")
    own = json.loads((folder / "own" / "manifest.json").read_text())
    assert next(column for column in own["columns"] if column["name"] == "difficulty").get("places") is None


def refusals(folder):
    """Nothing of it is lost silently: what does not fit is refused, and told where it is."""
    records = make_records(50, 8)
    source = write_jsonl(folder / "in" / "a.jsonl", records)
    out = folder / "out"

    def refused(code, message, *options, records=None):
        data = source if records is None else write_jsonl(folder / "bad" / "a.jsonl", records)
        text = run(TOOL, "pack", data, "-o", out, "-L", ROW, "-q", *options, expect=code)
        assert message in text, (message, text)
        assert not out.exists() and not (folder / "out.partial").exists()

    with_positions = ["--positions-columns", "masked_lm_positions"]
    refused(3, "masked tokens in", "--for", "bert", "-K", 3, "--max-predictions", 5)
    refused(3, "--max-predictions 5 leaves room for 8", "--for", "bert", "-K", 3, "--max-predictions", 5)
    refused(2, "there is no such column, did you mean 'masked_lm_positions'?", "--positions-columns", "masked_lm_position")
    refused(2, "--columns leaves it out", *with_positions, "--columns", "masked_lm_ids")
    refused(2, "is not a list of numbers", "--positions-columns", "next_sentence_labels")
    refused(2, "--max-predictions has no meaning", "--for", "mlm", "--max-predictions", 5)
    refused(2, "no column masked_lm_ids", "--for", "bert", "--columns", "masked_lm_positions,token_type_ids")

    def changed(number, **fields):
        return [{**record, **fields} if i == number else record for i, record in enumerate(records)]
    length = len(records[20]["input_ids"])
    refused(3, f"line 21: masked_lm_positions[1] is {length}; it is a position in a sequence of {length} tokens", *with_positions,
            records=changed(20, masked_lm_positions=[1, length], masked_lm_ids=[5, 6]))
    refused(3, "line 21: masked_lm_positions[0] is -1", *with_positions,
            records=changed(20, masked_lm_positions=[-1], masked_lm_ids=[5]))
    refused(3, "line 21: masked_lm_ids has 1 values for 2 of masked_lm_positions", *with_positions,
            records=changed(20, masked_lm_positions=[1, 2], masked_lm_ids=[5]))
    refused(3, "no whole number", *with_positions, records=changed(20, masked_lm_positions=[1.5], masked_lm_ids=[5]))
    weights = [{**record, "masked_lm_weights": [0.5 for _ in record["masked_lm_ids"]]} for record in records]
    refused(2, "masked_lm_weights is 0.5, and there is room for 0 and 1 alone", "--for", "bert", records=weights)
    labels = [{**record, "labels": record["input_ids"]} for record in records]
    refused(2, "labels: this preset has no labels", "--for", "bert", records=labels)


def main():
    with tempfile.TemporaryDirectory() as name:
        try:
            {case.__name__: case for case in (fields, cuts, native, formats_agree, arrays, weights, partners, refusals)}[CASE](pathlib.Path(name))
        except ModuleNotFoundError as missing:
            print(f"skipped: {missing}")
            sys.exit(77)


main()
