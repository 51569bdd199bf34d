#!/usr/bin/env python3
"""Every preset's output, opened with pyarrow (or struct) as its trainer would and compared value by value with the source: an oracle
that shares nothing with the tool but the source map. Usage: presets_test.py SHARDPACK [CASE]"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: needs pyarrow")
    sys.exit(77)

from preset_oracle import EOS, L, NONE, PAD, expected_row, npy, run, segments_of_shards, sequences, write_jsonl

TOOL = sys.argv[1]


def dtype(preset, column):
    return pa.int64() if preset == "torchtune" else pa.int8() if column == "loss_mask" else pa.int32()


def rows_of_arrow(folder):
    state = json.loads((folder / "state.json").read_text())
    info = json.loads((folder / "dataset_info.json").read_text())
    names = [file["filename"] for file in state["_data_files"]]
    assert names == sorted(path.name for path in folder.glob("*.arrow")) and len(state["_fingerprint"]) == 16
    for name in names:
        with pa.memory_map(str(folder / name)) as source:
            table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)
        features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
        assert features == info["features"] and list(features) == table.schema.names
        for field in table.schema:
            assert features[field.name] == {"feature": {"dtype": str(field.type.value_type), "_type": "Value"}, "_type": "Sequence"}
        yield table


def rows_of_parquet(folder):
    for path in sorted(folder.glob("*.parquet")):
        file = pq.ParquetFile(path)
        groups = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
        assert all(rows <= 1000 for rows in groups), groups
        assert all(file.metadata.row_group(g).column(0).compression == "ZSTD" for g in range(len(groups)))
        yield file.read()


def check_table_output(folder, preset, container, records, has_labels):
    tables = list(rows_of_arrow(folder) if container == "arrow" else rows_of_parquet(folder))
    rows = list(segments_of_shards(folder, records))
    assert sum(table.num_rows for table in tables) == len(rows) > 0
    number = 0
    for table in tables:
        columns = {name: table.column(name).to_pylist() for name in table.schema.names}
        for name in columns:
            assert table.schema.field(name).type.value_type == dtype(preset, name), (name, table.schema)
        for r in range(table.num_rows):
            expected = expected_row(preset, rows[number], has_labels)
            assert list(expected) == list(columns) or sorted(expected) == sorted(columns), (list(columns), list(expected))
            for name, values in expected.items():
                assert columns[name][r] == values, f"{preset} {name} row {number}:\n{columns[name][r]}\n{values}"
            number += 1
    return rows


def check_cover(rows, records, added=0):
    """Every sequence once, whatever the order."""
    found = sorted(tuple(ids) for row in rows for ids, _ in row)
    assert found == sorted(tuple(record["input_ids"]) + (EOS,) * added for record in records)


PRESETS = {"hf": ["arrow", "parquet"], "mlm": ["arrow", "parquet"], "trl": ["arrow", "parquet"], "llamafactory": ["arrow"],
           "axolotl": ["parquet"], "torchtune": ["parquet"], "maxtext": ["parquet"]}


def pack(source, out, preset, *options, expect=0):
    return run(TOOL, "pack", source, "-o", out, "-L", L, "--for", preset, "-q", "--pad-id", PAD, *options, expect=expect)


def each_preset(work):
    """All presets, all containers, labels of every kind, several shards."""
    for kind in ("plain", "labels", "mask", "wide"):
        records = sequences(kind)
        write_jsonl(work / "in.jsonl", records)
        for preset, containers in PRESETS.items():
            for container in containers:
                out = work / f"{kind}-{preset}-{container}"
                has_labels = kind in ("labels", "mask")
                if preset == "mlm" and has_labels:
                    refused = pack(work / "in.jsonl", out, preset, "--as", container, expect=2)
                    assert "--columns" in refused.stderr and not out.exists()
                    continue
                pack(work / "in.jsonl", out, preset, "--as", container, "--shard-bytes", 20_000)
                check_cover(check_table_output(out, preset, container, records, has_labels), records)
                run(TOOL, "verify", out, "-q")
                assert len(list(out.glob("*.arrow" if container == "arrow" else "*.parquet"))) > 1


def options_that_change_rows(work):
    """Added EOS, gaps, threads, repeated and fill rows, cut sequences."""
    records = sequences("labels", longest=L - 1)
    write_jsonl(work / "in.jsonl", records)
    out = work / "eos"
    pack(work / "in.jsonl", out, "hf", "--append-eos", "--eos-id", EOS)
    check_cover(check_table_output(out, "hf", "arrow", records, True), records, added=1)
    for threads in (1, 3):
        pack(work / "in.jsonl", work / f"threads{threads}", "trl", "--threads", threads, "--shard-bytes", 9_000)
    one, three = ({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
                  for folder in (work / "threads1", work / "threads3"))
    assert one == three
    pack(work / "in.jsonl", work / "multiple", "trl", "--segment-multiple", 8, expect=2)
    pack(work / "in.jsonl", work / "fill", "trl", "--tail", "fill", "--rows-multiple", 16, expect=2)
    pack(work / "in.jsonl", work / "repeat", "trl", "--rows-multiple", 16)
    rows = check_table_output(work / "repeat", "trl", "arrow", records, True)
    assert len(rows) % 16 == 0
    long = sequences("labels", longest=3 * L)
    write_jsonl(work / "long.jsonl", long)
    for overlong in ("split", "truncate"):
        pack(work / "long.jsonl", work / overlong, "hf", "--overlong", overlong)
        check_table_output(work / overlong, "hf", "arrow", long, True)


def carried_columns(work):
    """What the preset does not show stays in the hidden folder; first labels too."""
    records = sequences("extras")
    write_jsonl(work / "in.jsonl", records)
    out = work / "out"
    pack(work / "in.jsonl", out, "hf", "--columns", "all")
    rows = check_table_output(out, "hf", "arrow", records, True)
    manifest = json.loads((out / ".shardpack/manifest.json").read_text())
    assert manifest["preset"] == "hf" and manifest["container"] == "arrow"
    assert manifest["hidden_labels"] == sum(labels[0] != NONE for row in rows for _, labels in row) > 0
    here = out / ".shardpack" / manifest["shards"][0]["folder"]
    assert npy(here / "seq_first_label.npy")[0] == [labels[0] for row in rows for _, labels in row]
    source, _ = npy(here / "seq_source.npy")
    assert npy(here / "score.npy")[0] == [3 * record for record in source[1::3]]
    values, shape = npy(here / "token_type_ids.npy")
    assert shape == (len(rows), L)
    assert not (here / "labels.npy").exists() and not (here / "input_ids.npy").exists()
    assert {path.name for path in out.iterdir()} == {".shardpack", "data-00000-of-00001.arrow", "dataset_info.json", "state.json"}


def nothing_to_pack(work):
    (work / "in.jsonl").write_text('{"input_ids": []}\n')
    for preset, containers in PRESETS.items():
        for container in containers:
            out = work / f"{preset}-{container}"
            pack(work / "in.jsonl", out, preset, "--as", container)
            tables = list(rows_of_arrow(out) if container == "arrow" else rows_of_parquet(out))
            assert len(tables) == 1 and tables[0].num_rows == 0
            assert set(expected_row(preset, [], False)) == set(tables[0].schema.names)
            run(TOOL, "verify", out, "-q")


def damage_is_found(work):
    write_jsonl(work / "in.jsonl", sequences("plain"))
    out = work / "out"
    pack(work / "in.jsonl", out, "trl")
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        run(TOOL, "verify", out, "-q", expect=1)
        path.write_bytes(whole)
    (out / "stray.arrow").write_bytes(b"")
    run(TOOL, "verify", out, "-q", expect=1)
    pack(work / "in.jsonl", out, "trl", "--force", expect=2)
    (out / "stray.arrow").unlink()
    pack(work / "in.jsonl", out, "trl", "--force")
    refused = run(TOOL, "scan", out, expect=2)
    assert "packed dataset" in refused.stderr


def megatron_rows(work):
    """Each row one document of exactly L tokens, EOS after every sequence and on padding."""
    records = sequences("plain", longest=L - 1)
    records += [{"input_ids": [9, EOS]}]  # ends in it already
    write_jsonl(work / "in.jsonl", records)
    out = work / "out"
    options = ("--eos-id", EOS, "-L", L, "-q", "--for", "megatron", "--shard-bytes", 10_000)
    run(TOOL, "pack", work / "in.jsonl", "-o", out, *options)
    rows = list(segments_of_shards(out, records))
    number = 0
    for idx in sorted(out.glob("*.idx")):
        data, ids = idx.read_bytes(), idx.with_suffix(".bin").read_bytes()
        assert data[:9] == b"MMIDIDX\0\0"
        version, code, count, documents = struct.unpack_from("<QBQQ", data, 9)
        assert (version, code, documents) == (1, 8, count + 1)
        lengths = struct.unpack_from(f"<{count}i", data, 34)
        pointers = struct.unpack_from(f"<{count}q", data, 34 + 4 * count)
        assert struct.unpack_from(f"<{documents}q", data, 34 + 12 * count) == tuple(range(documents))
        assert len(data) == 34 + 12 * count + 8 * documents and len(ids) == 2 * L * count
        for length, pointer in zip(lengths, pointers):
            assert length == L
            expected = [token for one, _ in rows[number] for token in one]
            assert all(one[-1] == EOS for one, _ in rows[number])
            assert list(struct.unpack_from(f"<{L}H", ids, pointer)) == expected + [EOS] * (L - len(expected))
            number += 1
    assert number == len(rows) > 1 and len(list(out.glob("*.idx"))) > 1
    run(TOOL, "verify", out, "-q")
    write_jsonl(work / "inner.jsonl", records + [{"input_ids": [5, EOS, 6]}])
    refused = run(TOOL, "pack", work / "inner.jsonl", "-o", work / "inner", *options, expect=3)
    assert f"record {len(records)}, token 1" in refused.stderr and "--allow-inner-eos" in refused.stderr
    run(TOOL, "pack", work / "inner.jsonl", "-o", work / "inner", *options, "--allow-inner-eos")
    run(TOOL, "pack", work / "in.jsonl", "-o", work / "pad", *options, "--pad-id", 0, expect=2)


def bridge_rows(work):
    """A sequence of n tokens takes n - 1 slots; the mask is that of the targets."""
    for kind in ("plain", "labels", "mask"):
        records = sequences(kind, longest=L + 1, least=2)
        write_jsonl(work / "in.jsonl", records + [dict(records[0], **{name: values[:1] for name, values in records[0].items()})])
        out = work / kind
        pack(work / "in.jsonl", out, "bridge", "--eos-id", EOS, "--shard-bytes", 20_000)
        rows = check_table_output(out, "bridge", "parquet", records, kind != "plain")
        check_cover(rows, records)
        slots = [sum(len(ids) - 1 for ids, _ in row) for row in rows]
        manifest = json.loads((out / ".shardpack/manifest.json").read_text())
        assert max(slots) == L and manifest["padding_tokens"] == L * len(rows) - sum(slots)
        assert manifest["removed"]["short"]["sequences"] == 1 and 0.9 < manifest["efficiency"] <= 1
        plan = json.loads((out / ".shardpack/plan-00000.json").read_text())
        assert plan["policy"]["slot_rule"] == "targets"
        assert json.loads((out / "packed_metadata.jsonl").read_text()) == [{
            "dataset_max_seqlen": L, "max_samples_per_bin": max(map(len, rows)), "min_packed_seqlen": min(slots), "pack_size": L}]
        assert len(list(out.glob("train-*-of-*.idx.parquet"))) > 1
        run(TOOL, "verify", out, "-q")
        again = work / f"{kind}-planned"
        pack(work / "in.jsonl", again, "bridge", "--eos-id", EOS, "--shard-bytes", 20_000, "--plan", out)
        assert [path.read_bytes() for path in sorted(out.glob("*.parquet"))] == \
               [path.read_bytes() for path in sorted(again.glob("*.parquet"))]
        refused = pack(work / "in.jsonl", work / "x", "hf", "--plan", out, expect=3)
        assert "slot_rule" in refused.stderr, refused.stderr
    for overlong in ("split", "truncate", "drop"):
        long = sequences("labels", longest=3 * L, least=2)
        write_jsonl(work / "long.jsonl", long)
        pack(work / "long.jsonl", work / overlong, "bridge", "--eos-id", EOS, "--overlong", overlong)
        check_table_output(work / overlong, "bridge", "parquet", long, True)
    write_jsonl(work / "other.jsonl", sequences("other labels"))
    refused = pack(work / "other.jsonl", work / "other", "bridge", "--eos-id", EOS, expect=2)
    assert "differs from the token id" in refused.stderr
    pack(work / "other.jsonl", work / "other", "bridge", expect=2)


def interrupted_runs_go_on(work):
    """A run that was killed: with --resume the bytes are those of an undisturbed one."""
    write_jsonl(work / "in.jsonl", sequences("labels", count=3000))
    options = ("--shard-bytes", 20_000, "--threads", 1)
    pack(work / "in.jsonl", work / "whole", "hf", *options)
    whole = {path.relative_to(work / "whole"): path.read_bytes() for path in (work / "whole").rglob("*") if path.is_file()}
    for delay in (0.05, 0.1, 0.2):
        out = work / f"out{delay}"
        tool = subprocess.Popen([str(word) for word in (TOOL, "pack", work / "in.jsonl", "-o", out, "-L", L, "--for", "hf", "-q",
                                                        "--pad-id", PAD, *options)])
        time.sleep(delay)
        tool.kill()
        tool.wait()
        if not out.exists():
            pack(work / "in.jsonl", out, "hf", "--resume", *options)
        assert whole == {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def main():
    cases = [each_preset, options_that_change_rows, carried_columns, nothing_to_pack, damage_is_found, megatron_rows, bridge_rows,
             interrupted_runs_go_on]
    for case in cases:
        if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            case(pathlib.Path(folder))
        print(f"{case.__name__}: ok")


main()
