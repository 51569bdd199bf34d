#!/usr/bin/env python3
"""Arrow and Parquet as pyarrow writes them: every layout of lists gives the sequences that the same data give as JSON lines and as
Megatron files, datasets are read as `datasets` saves them, and what cannot be read says file, row and remedy.
Usage: arrow_test.py SHARDPACK [CASE]; needs pyarrow alone."""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: needs pyarrow (./dev puts it into build/arrow-venv)")
    sys.exit(77)

TOOL = sys.argv[1]
INTEGERS = [pa.uint8(), pa.int8(), pa.uint16(), pa.int16(), pa.uint32(), pa.int32(), pa.uint64(), pa.int64()]


def run(*command, expect=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == expect, f"{command}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}"
    return done


def scan(path, *options):
    return json.loads(run(TOOL, "scan", path, "--json", *options).stdout)


def facts(path, *options):
    """What has to be equal whatever the format."""
    report = scan(path, *options)
    return {key: report[key] for key in ("sequences", "tokens", "empty", "token_id_min", "token_id_max", "fingerprint",
                                         "null_records", "padding")}


def packed(path, out, *options):
    run(TOOL, "pack", path, "-o", out, "-L", "64", "-q", *options)
    run(TOOL, "verify", out, "--against", path)
    return [(file.relative_to(out), file.read_bytes()) for file in sorted(pathlib.Path(out).rglob("*.npy"))]


def rows(count, largest=127, longest=60, seed=1):
    random.seed(seed)
    return [[random.randrange(largest + 1) for _ in range(random.randrange(longest))] for _ in range(count)]


def write_jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def write_megatron(prefix, sequences):
    ids = [token for sequence in sequences for token in sequence]
    prefix.with_suffix(".bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    count, begin, begins = len(sequences), 0, []
    for sequence in sequences:
        begins.append(2 * begin)
        begin += len(sequence)
    prefix.with_suffix(".idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1) + struct.pack(f"<{count}i", *map(len, sequences))
        + struct.pack(f"<{count}q", *begins) + struct.pack(f"<{count + 1}q", *range(count + 1)))
    return prefix.with_suffix(".bin")


def write_stream(path, table, batch_rows=7, **options):
    with pa.OSFile(str(path), "wb") as file:
        with pa.ipc.new_stream(file, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table, max_chunksize=batch_rows)
    return path


def write_file(path, table, batch_rows=7, **options):
    with pa.OSFile(str(path), "wb") as file:
        with pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table, max_chunksize=batch_rows)
    return path


def table_of(values, kind, **columns):
    columns = {name: pa.array(column) if isinstance(column, list) else column for name, column in columns.items()}
    return pa.table({"text": ["t"] * len(values), "input_ids": pa.array(values, kind), **columns})


def save_to_disk(folder, table, files=2, batch_rows=7, **options):
    """As Dataset.save_to_disk leaves it, but named so that the order of names is the wrong one."""
    folder.mkdir(parents=True)
    names, per_file = [], -(-table.num_rows // files)
    for number in range(files):
        names.append(f"data-{files - number:05d}.arrow")
        write_stream(folder / names[-1], table.slice(number * per_file, per_file), batch_rows, **options)
    write_stream(folder / "cache-1234567890abcdef.arrow", pa.table({"other": [1]}))
    (folder / "dataset_info.json").write_text("{}")
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_format_columns": None, "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def layouts(folder):
    """Every kind of list of every integer, in every container."""
    values = rows(100)
    expected = facts(write_jsonl(folder / "a.jsonl", [{"input_ids": ids} for ids in values]))
    assert facts(write_megatron(folder / "m", values)) == expected
    kinds = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
    for number, integer in enumerate(INTEGERS):
        for make in kinds:
            table = table_of(values, make(integer))
            assert facts(write_stream(folder / "s.arrow", table)) == expected, table.schema
            if make is kinds[number % len(kinds)]:
                assert facts(write_file(folder / "f.arrow", table, 1000)) == expected, table.schema
                assert facts(write_stream(folder / "old.arrow", table, use_legacy_format=True)) == expected, table.schema
        table = table_of(values, pa.list_(integer))
        pq.write_table(table, folder / "a.parquet", row_group_size=13)
        assert facts(folder / "a.parquet") == expected, table.schema
    equal = [[i, i + 1, i + 2] for i in range(50)]
    expected = facts(write_jsonl(folder / "b.jsonl", [{"input_ids": ids} for ids in equal]))
    table = table_of(equal, pa.list_(pa.int32(), 3))
    pq.write_table(table, folder / "b.parquet")
    for path in (write_stream(folder / "b.arrow", table), write_file(folder / "c.arrow", table), folder / "b.parquet"):
        assert facts(path) == expected, path


def slices(folder):
    """Arrays that begin in the middle of their buffers, columns in several chunks, batches without rows, unsorted views."""
    values = rows(200, 50_000)
    expected = facts(write_jsonl(folder / "a.jsonl", [{"input_ids": ids} for ids in values[50:]]))
    for kind in (pa.list_(pa.int32()), pa.large_list(pa.int64())):
        whole = pa.array(values, kind)
        chunks = pa.chunked_array([whole[50:51], whole[51:51], whole[51:120], whole[120:]])
        table = pa.table({"input_ids": chunks, "n": [str(i) for i in range(150)]})
        pq.write_table(table, folder / "a.parquet", row_group_size=64)
        for path in (write_stream(folder / "a.arrow", table, 1000), write_file(folder / "b.arrow", table, 1000), folder / "a.parquet"):
            assert facts(path) == expected, (path, kind)
    flat = pa.array(range(100), pa.int32())
    views = pa.ListViewArray.from_arrays(pa.array([90, 0, 50, 50], pa.int32()), pa.array([10, 3, 4, 4], pa.int32()), flat)
    listed = [list(range(90, 100)), [0, 1, 2], [50, 51, 52, 53], [50, 51, 52, 53]]
    expected = facts(write_jsonl(folder / "v.jsonl", [{"input_ids": ids} for ids in listed]))
    path = write_stream(folder / "v.arrow", pa.table({"input_ids": views}))
    assert facts(path) == expected
    assert packed(path, folder / "pa") == packed(folder / "v.jsonl", folder / "pj")
    empty = pa.table({"input_ids": pa.array([], pa.list_(pa.int32()))})
    pq.write_table(empty, folder / "e.parquet")
    for path in (write_stream(folder / "e.arrow", empty), write_file(folder / "ef.arrow", empty), folder / "e.parquet"):
        assert scan(path)["sequences"] == 0


def codecs(folder):
    """Compressed and nested as Parquet and Arrow writers do it; packed rows are equal byte by byte."""
    values = rows(300, 50_000)
    jsonl = write_jsonl(folder / "a.jsonl", [{"input_ids": ids} for ids in values])
    expected, rows_of_jsonl = facts(jsonl), packed(jsonl, folder / "p0")
    table = table_of(values, pa.list_(pa.int32()))
    paths = [write_file(folder / f"{codec}.arrow", table, 50, compression=codec) for codec in ("lz4", "zstd")]
    paths.append(write_stream(folder / "s.arrow", table, 50, compression="zstd"))
    for name, codec in (("a", "lz4"), ("b", "uncompressed")):
        pyarrow.feather.write_feather(table, folder / f"{name}.feather", compression=codec)
        paths.append(folder / f"{name}.feather")
    for number, options in enumerate((
            {"compression": "snappy", "write_page_index": True}, {"compression": "zstd", "data_page_size": 256},
            {"compression": "gzip", "use_dictionary": False}, {"compression": "none", "data_page_version": "2.0"},
            {"use_compliant_nested_type": False}, {"version": "1.0"}, {"store_schema": False}, {"row_group_size": 1000})):
        paths.append(folder / f"{number}.parquet")
        pq.write_table(table, paths[-1], **{"row_group_size": 40, **options})
    for number, path in enumerate(paths):
        assert facts(path) == expected, path
        assert facts(path, "--limit", "45") == facts(jsonl, "--limit", "45"), path
        if number % 3 == 0:
            assert packed(path, folder / f"p-{path.name}") == rows_of_jsonl, path
    one = packed(paths[0], folder / "t1", "--threads", "1")
    assert one == packed(paths[0], folder / "t3", "--threads", "3")


def masks(folder):
    """Positions whose attention_mask is 0 are removed and counted, whatever its type and wherever they are."""
    values = rows(120, 50_000)
    ones = [[1] * len(ids) for ids in values]
    random.seed(7)
    kinds = {"ones": ones, "right": [[1] * (len(r) - len(r) // 3) + [0] * (len(r) // 3) for r in values],
             "left": [[0] * (len(r) // 3) + [1] * (len(r) - len(r) // 3) for r in values],
             "holes": [[random.randrange(2) for _ in r] for r in values]}
    for name, mask in kinds.items():
        jsonl = write_jsonl(folder / f"{name}.jsonl",
                            [{"input_ids": ids, "attention_mask": bits} for ids, bits in zip(values, mask)])
        expected, rows_of_jsonl = facts(jsonl), packed(jsonl, folder / f"{name}-j")
        for number, kind in enumerate((pa.list_(pa.int8()), pa.list_(pa.bool_()), pa.large_list(pa.int64()))):
            table = table_of(values, pa.list_(pa.int32()), attention_mask=pa.array(mask, pa.list_(pa.int8())).cast(kind))
            path = write_stream(folder / f"{name}.arrow", table)
            assert facts(path) == expected, (name, kind)
            pq.write_table(table, folder / f"{name}.parquet", row_group_size=50)
            assert facts(folder / f"{name}.parquet") == expected, (name, kind)
            assert packed(path, folder / f"{name}-{number}") == rows_of_jsonl, (name, kind)


def nulls_and_groups(folder):
    """Rows without ids or group, dropped when asked to; groups told by any single value."""
    values = rows(90, 50_000, 30)
    keys = {"s": [random.choice(["a", "b", "a text of more than twelve bytes"]) for _ in values],
            "n": [random.randrange(3) for _ in values], "b": [random.random() < 0.5 for _ in values]}
    values[3] = values[40] = None
    keys["s"][7] = None
    jsonl = write_jsonl(folder / "a.jsonl", [
        {"input_ids": ids, **{name: column[i] for name, column in keys.items()}} for i, ids in enumerate(values)])
    types = {"s": [pa.string(), pa.large_string(), pa.string_view()], "n": [pa.int64(), pa.uint8()], "b": [pa.bool_()]}
    for name, kinds in types.items():
        options = ["--group-column", name, "--null-row", "drop", "--columns", "none"]
        expected = packed(jsonl, folder / f"j-{name}", *options)
        for number, kind in enumerate(kinds):
            table = table_of(values, pa.list_(pa.int32()), **{name: pa.array(keys[name], kind)})
            path = write_stream(folder / f"{name}{number}.arrow", table)
            assert packed(path, folder / f"a-{name}{number}", *options) == expected, kind
            assert facts(path, "--null-row", "drop", "--columns", "none") == facts(jsonl, "--null-row", "drop", "--columns", "none")


def carried_columns(folder):
    """Columns of every kind and type are carried as from JSON lines, in place or decoded, padded or not; faults name their row."""
    random.seed(3)
    values = rows(150, 50_000, 40)
    values[17] = []
    lists = {"labels": [[random.choice([-100, token]) for token in ids] for ids in values],
             "loss_mask": [[random.random() < 0.5 for _ in ids] for ids in values],
             "weights": [[random.choice([0.25, 1.0, -7.5]) for _ in ids] for ids in values],
             "places": [[random.randrange(9) for _ in range(random.randrange(4))] for _ in values]}
    singles = {"score": [random.choice([0.5, -3.0, 1 / 3]) for _ in values], "rank": [random.randrange(-9, 10**12) for _ in values],
               "good": [random.random() < 0.5 for _ in values],
               "name": [random.choice(["", "\u00e9", "a name of more than twelve bytes"]) for _ in values]}
    mask = [[int(random.random() > 0.1) for _ in ids] for ids in values]
    types = {"labels": [pa.list_(pa.int64()), pa.large_list(pa.int32())], "loss_mask": [pa.list_(pa.bool_()), pa.list_(pa.int8())],
             "weights": [pa.list_(pa.float64()), pa.list_(pa.float16())], "places": [pa.list_(pa.uint8()), pa.list_(pa.int64())],
             "score": [pa.float64(), pa.float64()], "rank": [pa.int64(), pa.int64()], "good": [pa.bool_(), pa.uint8()],
             "name": [pa.string(), pa.large_string()], "attention_mask": [pa.list_(pa.int8()), pa.list_(pa.bool_())]}
    for masked in (False, True):
        columns = {**lists, **singles, **({"attention_mask": mask} if masked else {})}
        jsonl = write_jsonl(folder / f"c{masked}.jsonl", [
            {"input_ids": ids, **{name: column[i] for name, column in columns.items()}} for i, ids in enumerate(values)])
        for number, options in enumerate((["--columns", "all"], ["--columns", "aligned,name", "--overlong", "split", "-L", "23"],
                                          ["--limit", "31", "--columns", "all"])):
            expected = packed(jsonl, folder / f"j{masked}{number}", *options)
            assert len(expected) > 10
            for kind in (0, 1):
                table = table_of(values, pa.list_(pa.int32()),
                                 **{name: pa.array([[int(v) for v in row] for row in column] if name == "loss_mask" and kind else
                                                   [int(v) for v in column] if name == "good" and kind else
                                                   [[float(v) for v in row] for row in column] if name == "weights" and kind else
                                                   [[bool(v) for v in row] for row in column] if name == "attention_mask" and kind else
                                                   column, types[name][kind]) for name, column in columns.items()}).drop(["text"])
                paths = [write_stream(folder / f"c{masked}{kind}.arrow", table)]
                paths.append(folder / f"c{masked}{kind}.zstd.arrow")
                with pa.ipc.new_stream(paths[-1], table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
                    writer.write_table(table, max_chunksize=37)
                if not kind:  # half floats have no Parquet type everywhere
                    paths.append(folder / f"c{masked}{kind}.parquet")
                    pq.write_table(table, paths[-1], row_group_size=40)
                for place, path in enumerate(paths):
                    assert packed(path, folder / f"a{masked}{number}{kind}{place}", *options) == expected, (path, options)
                    assert facts(path, *options[:2]) == facts(jsonl, *options[:2]), (path, options)

    short = [list(row) for row in lists["labels"]] * 7  # the kinds are settled on the first thousand rows
    short[1040] = short[1040] + [1]
    null = lists["labels"] * 7
    null[1041] = None
    inside = [list(row) for row in lists["labels"]] * 7
    inside[1045] = [None] * len(values[1045 % 150])
    for column, message in ((short, "row 1,040: labels has"), (null, "row 1,041: labels is null"),
                            (inside, "row 1,045: labels[0] is null")):
        path = write_stream(folder / "bad.arrow", pa.table({"input_ids": pa.array(values * 7, pa.list_(pa.int32())),
                                                            "labels": pa.array(column, pa.list_(pa.int64()))}))
        pq.write_table(pa.ipc.open_stream(path).read_all(), folder / "bad.parquet")
        for bad in (path, folder / "bad.parquet"):
            found = run(TOOL, "pack", bad, "-o", folder / "x", "-L", "64", expect=3).stderr
            assert message in found, (bad, message, found)


def datasets(folder):
    """Saved datasets: the order of state.json, and splits."""
    train, test = rows(100, 50_000), rows(30, 50_000, seed=2)
    root = folder / "data"
    for name, values in (("train", train), ("test", test)):
        save_to_disk(root / name, table_of(values, pa.list_(pa.int32())))
        write_jsonl(folder / f"{name}.jsonl", [{"input_ids": ids} for ids in values])
    (root / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    for name in ("train", "test"):
        assert facts(root, "--split", name) == facts(folder / f"{name}.jsonl")
        assert facts(root / name) == facts(folder / f"{name}.jsonl")
        both = [packed(source, folder / f"{source.suffix[1:]}-{name}", "--packer", "sequential")
                for source in (root / name, folder / f"{name}.jsonl")]
        both = [[file for file in files if file[0].name != "seq_source.npy"] for files in both]  # two files and one
        assert both[0] == both[1]
    report = scan(root, "--split", "train")
    assert [file["name"] for file in report["files"]] == ["train/data-00002.arrow", "train/data-00001.arrow"], report["files"]
    assert {file["format"] for file in report["files"]} == {"hf"}
    run(TOOL, "pack", root, "--split", "test", "-o", folder / "split", "-L", "64", "-q")
    run(TOOL, "verify", folder / "split", "--against", root)
    for options, words in (((), ("train, test", "--split")), (("--split", "tset"), ("tset", "train, test"))):
        stderr = run(TOOL, "scan", root, *options, expect=2).stderr
        assert all(word in stderr for word in words), stderr
    assert "dataset_dict.json" in run(TOOL, "scan", root / "train", "--split", "train", expect=2).stderr


def save_picked(folder, table, order, files=2, batch_rows=7, indices=1, **options):
    """As a dataset is saved whose rows are those of another in some order: the whole of that, and a table of indices."""
    save_to_disk(folder, table, files, batch_rows, **options)
    per_file, names = -(-max(len(order), 1) // indices), []
    for number in range(indices):
        names.append(f"indices-{number}.arrow")
        part = pa.array(order[number * per_file:(number + 1) * per_file], pa.uint64())
        write_stream(folder / names[-1], pa.table({"indices": part}), 11)
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": name} for name in names]}))
    return folder


def bert_columns(count):
    """Every kind of column beside the ids; padding, masked tokens, rows without tokens."""
    draw = random.Random(8)
    values = [[draw.randrange(50_000) for _ in range(draw.choice([0, 1, draw.randrange(60)]))] for _ in range(count)]
    masks = [[int(draw.random() < 0.8) for _ in ids] for ids in values]
    places = [sorted(draw.sample(range(len(ids)), len(ids) // 5)) for ids in values]
    of_places = lambda make: [[make() for _ in own] for own in places]
    return table_of(
        values, pa.list_(pa.int32()), attention_mask=pa.array(masks, pa.list_(pa.int8())),
        labels=pa.array([[x if draw.random() < 0.5 else -100 for x in ids] for ids in values], pa.large_list(pa.int64())),
        kept=pa.array([[draw.random() < 0.5 for _ in ids] for ids in values], pa.list_(pa.bool_())),
        weight=pa.array([[draw.random() for _ in ids] for ids in values], pa.list_(pa.float32())),
        masked_lm_positions=pa.array(places, pa.list_view(pa.int16())),
        masked_lm_ids=pa.array(of_places(lambda: draw.randrange(50_000)), pa.list_(pa.int32())),
        tags=pa.array([[draw.randrange(9) for _ in range(draw.randrange(3))] for _ in values], pa.list_(pa.uint16())),
        vector=pa.array([[draw.random() for _ in range(4)] for _ in values], pa.list_(pa.float64(), 4)),
        score=pa.array([draw.random() for _ in values], pa.float64()), good=pa.array([draw.random() < 0.5 for _ in values]),
        name=pa.array(["é" * draw.randrange(4) for _ in values], pa.large_string()))


def indices_tables(folder):
    """A dataset whose rows an indices table picks packs as the one with those rows: every column, value by value."""
    table, draw = bert_columns(300), random.Random(3)
    orders = {
        "shuffled": draw.sample(range(300), 300),
        "train": draw.sample(range(300), 290)[:200],
        "selected": list(range(40, 170)),
        "repeated": [draw.randrange(300) for _ in range(700)],
        "reversed": list(range(299, -1, -1)),
        "none": [],
    }
    everything = ("--columns", "all", "--positions-columns", "masked_lm_positions", "--group-column", "good")
    for name, order in orders.items():
        picked = {kind: save_picked(folder / f"{name}-{kind}", table, order, files=3, indices=1 + len(order) % 3, **options)
                  for kind, options in (("plain", {}), ("zstd", {"compression": "zstd"}))}
        rows_of = table.take(pa.array(order, pa.int64()))  # pyarrow's own
        whole = save_to_disk(folder / f"{name}-whole", rows_of, files=1, batch_rows=50)
        pq.write_table(rows_of, folder / f"{name}.parquet", row_group_size=64)
        for options in ((), everything, (*everything, "--limit", 123)):
            expected = facts(whole, *options)
            assert facts(folder / f"{name}.parquet", *options) == expected
            for kind, source in picked.items():
                assert facts(source, *options) == expected, (name, kind, options)
        if order:
            expected = packed(whole, folder / f"{name}-out", *everything)
            for kind, source in picked.items():
                assert packed(source, folder / f"{name}-{kind}-out", *everything) == expected, (name, kind)
    source = folder / "repeated-plain"
    assert facts(source, *everything, "--threads", 1) == facts(source, *everything, "--threads", 2)


def indices_of_bad_rows(folder):
    """Rows that are not picked may hold anything, as after filter(); of those that are, file and row are told."""
    ids = pa.list_(pa.int32())
    values = [[1, 2]] * 1200
    bad = {3: None, 10: [5, -6], 11: [7, None]}
    labels = {2: None, 4: [1]}
    table = pa.table({"input_ids": pa.array([bad.get(i, row) for i, row in enumerate(values)], ids),
                      "labels": pa.array([labels.get(i, row) for i, row in enumerate(values)], ids)})
    good = [i for i in range(1200) if i not in bad and i not in labels]
    order = random.Random(1).sample(good, 1100)
    source = save_picked(folder / "good", table, order)
    assert packed(source, folder / "g") == packed(save_to_disk(folder / "whole", table.take(order), 1), folder / "w")
    for number, (row, message) in enumerate({3: "input_ids is null", 10: "input_ids[1] is -6", 11: "input_ids[1] is null",
                                             2: "labels is null", 4: "labels has 1 values for 2"}.items()):
        source = save_picked(folder / f"bad-{number}", table, [*order, row])
        stderr = run(TOOL, "scan", source, expect=3).stderr
        assert f"data-00002.arrow: row {row}" in stderr and message in stderr, stderr
    # Null rows are dropped and counted when that is asked for.
    nulls = save_picked(folder / "nulls", table, [1, 3, 3, 5])
    assert facts(nulls, "--null-row", "drop")["null_records"] == 2
    # What decides which columns are carried are the rows that are picked: the first thousand of the files are ragged.
    ragged = pa.table({"input_ids": pa.array([[1, 2]] * 1100, ids), "extra": pa.array([[1]] * 1050 + [[3, 4]] * 50, ids)})
    source = save_picked(folder / "ragged", ragged, list(range(1060, 1100)))
    assert packed(source, folder / "r") == packed(save_to_disk(folder / "rw", ragged.take(list(range(1060, 1100))), 1), folder / "q")
    assert (folder / "r" / "shard-00000-00000" / "extra.npy").exists()

    source = save_picked(folder / "indices", table, good[:40])
    for values, kind, message in (([1] * 12 + [1200], pa.uint64(), "row 12: index 1,200 of a dataset of 1,200 rows"),
                                  ([1, -1], pa.int64(), "row 1: index -1 of a dataset of 1,200 rows"),
                                  ([1, None], pa.int64(), "row 1: an index is no whole number"),
                                  (["a"], pa.string(), "row 0: an index is no whole number"),
                                  ([1.0], pa.float64(), "indices")):
        write_stream(source / "indices-0.arrow", pa.table({"indices": pa.array(values, kind)}), 5)
        stderr = run(TOOL, "scan", source, expect=3).stderr
        assert "indices-0.arrow" in stderr and message in stderr, stderr
    write_stream(source / "indices-0.arrow", pa.table({"rows": pa.array([1])}))
    assert "expected a column 'indices'" in run(TOOL, "scan", source, expect=3).stderr
    write_stream(source / "indices-0.arrow", pa.table({"indices": pa.array([1])}))
    write_stream(source / "data-00001.arrow", pa.table({"input_ids": pa.array([[1]], pa.list_(pa.int64()))}))
    stderr = run(TOOL, "scan", source, expect=3).stderr
    assert "data-00001.arrow" in stderr and "its columns are not those of" in stderr, stderr
    (source / "data-00001.arrow").unlink()
    assert "data-00001.arrow" in run(TOOL, "scan", source, expect=4).stderr


def faults(folder):
    """Exit 3 with file, row and what helps."""
    good = [[1, 2], [3], [4, 5, 6]]
    ids = pa.list_(pa.int32())
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array([[1, 2], [3]], ids))
    extension = pa.ExtensionArray.from_storage(pa.opaque(ids, "kind", "vendor"), pa.array(good, ids))
    cases = {
        "null row": (pa.array([[1], None, [2]], ids), "row 1", "--null-row drop"),
        "null id": (pa.array([[1], [2, 3], [4, None]], ids), "row 2", "input_ids[1] is null"),
        "negative": (pa.array([[1], [2, -3], [4]], ids), "row 1", "input_ids[1] is -3"),
        "large": (pa.array([[1], [2], [3, 4, 2**32]], pa.list_(pa.int64())), "row 2", "input_ids[2] is 4294967296"),
        "floats": (pa.array([[1.0], [2.5], [3.0]]), "row 0", "cast"),
        "numbers": (pa.array([1, 2, 3]), "row 0", "--ids-column"),
        "lists of lists": (pa.array([[[1]], [[2]], [[3]]]), "row 0", "flatten"),
        "strings": (pa.array([["a"], ["b"], ["c"]]), "row 0", "cast"),
        "dictionary": (dictionary, "row 0", "dictionary_decode"),
        "dictionary values": (pa.ListArray.from_arrays([0, 1, 2, 3], pa.array(["a", "b", "a"]).dictionary_encode()), "row 0", "cast"),
        "extension": (extension, "row 0", "storage"),
    }
    for name, (column, row, remedy) in cases.items():
        table = pa.table({"input_ids": column})
        paths = [write_stream(folder / "bad.arrow", table), write_file(folder / "file.arrow", table)]
        if name not in ("dictionary", "extension"):
            paths.append(write_stream(folder / "zstd.arrow", table, compression="zstd"))
        if name not in ("dictionary", "dictionary values", "extension"):
            pq.write_table(table, folder / "bad.parquet")
            paths.append(folder / "bad.parquet")
        for path in paths:
            stderr = run(TOOL, "scan", path, expect=3).stderr
            assert path.name in stderr and row in stderr and remedy in stderr, (name, stderr)
    masks_of = {"short": ([[1, 1], [1], [1, 1]], "row 2", "2 entries for 3"), "two": ([[1, 1], [2], [1, 1, 1]], "row 1", "expected 0 or 1"),
                "null": ([[1, 1], None, [1, 1, 1]], "row 1", "is null")}
    for mask, row, remedy in masks_of.values():
        path = write_stream(folder / "mask.arrow", pa.table({"input_ids": pa.array(good, ids), "attention_mask": pa.array(mask, ids)}))
        stderr = run(TOOL, "scan", path, expect=3).stderr
        assert path.name in stderr and row in stderr and remedy in stderr, stderr
    text = pa.table({"text": ["a", "b"], "tokens": pa.array([[1], [2]], ids)})
    path = write_stream(folder / "text.arrow", text)
    assert "--ids-column tokens" in run(TOOL, "scan", path, expect=3).stderr
    assert scan(path, "--ids-column", "tokens")["tokens"] == 2
    run(TOOL, "scan", path, "--ids-column", "no_such", expect=2)
    run(TOOL, "scan", path, "--ids-column", "tokens", "--group-column", "no_such", expect=2)
    assert "tokenize first" in run(TOOL, "scan", write_stream(folder / "t.arrow", text.select(["text"])), expect=3).stderr
    stream = (folder / "text.arrow").read_bytes()
    (folder / "two.arrow").write_bytes(stream + stream)
    assert "several" in run(TOOL, "scan", folder / "two.arrow", "--ids-column", "tokens", expect=3).stderr


def truncated(folder):
    """A prefix is never taken for the whole; the unit tests try every byte."""
    table = table_of(rows(30, 50_000), pa.list_(pa.int32()))
    pq.write_table(table, folder / "whole.parquet", row_group_size=10)
    for path in (write_stream(folder / "whole.arrow", table), write_file(folder / "file.arrow", table), folder / "whole.parquet"):
        data = path.read_bytes()
        cut = folder / f"cut{path.suffix}"
        for size in range(9, len(data), len(data) // 13):
            cut.write_bytes(data[:size])
            assert cut.name in run(TOOL, "scan", cut, expect=3).stderr


CASES = [layouts, slices, codecs, masks, nulls_and_groups, carried_columns, datasets, indices_tables, indices_of_bad_rows, faults,
         truncated]

if __name__ == "__main__":
    for case in CASES:
        if len(sys.argv) < 3 or case.__name__ == sys.argv[2]:
            with tempfile.TemporaryDirectory() as scratch:
                case(pathlib.Path(scratch))
            print(f"{case.__name__}: as expected")
