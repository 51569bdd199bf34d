#!/usr/bin/env python3
"""What the presets wrote, read back by the tool: verify finds every value that was changed, with pyarrow and with hashes made to match,
and names the file and the row; unpack gives the sources. Usage: presets_back_test.py SHARDPACK RESTATE_MANIFEST [CASE]"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: needs pyarrow")
    sys.exit(77)

from preset_oracle import EOS, L, NONE, PAD, npy, run, segments_of_shards, sequences, write_jsonl

TOOL, RESTATE = sys.argv[1:3]
CONTAINERS = {"hf": ["arrow", "parquet"], "mlm": ["arrow", "parquet"], "trl": ["arrow", "parquet"], "llamafactory": ["arrow"],
              "axolotl": ["parquet"], "torchtune": ["parquet"], "maxtext": ["parquet"], "bridge": ["parquet"], "megatron": ["megatron"]}
WITHOUT_LABELS = ("mlm", "megatron")
LABELS = ("labels", "loss_mask", "targets", "targets_segmentation")  # what states which labels a token has


def records_of(preset, kind, count=60, seed=5):
    least, longest = {"bridge": (2, L + 1), "megatron": (1, L - 1)}.get(preset, (1, L))
    records = sequences("plain" if kind == "shifted" else kind, count, longest, least, seed)
    for number, record in enumerate(records):
        record["score"] = number * 7
        record["token_type_ids"] = [(number + i) % 2 for i in range(len(record["input_ids"]))]
        if kind == "shifted" and preset == "bridge":
            record["loss_mask"] = [int((token + number) % 3 > 0) for token in record["input_ids"][1:]] + [0]
        elif kind == "shifted":
            record["labels"] = [token if (token + number) % 3 else NONE for token in record["input_ids"][1:]] + [NONE]
    return records


def pack(source, out, preset, *options):
    pad = [] if preset == "megatron" else ["--pad-id", PAD]
    run(TOOL, "pack", source, "-o", out, "-L", L, "--for", preset, "-q", *pad, *options)


def kinds_of(preset):
    return ("plain",) if preset in WITHOUT_LABELS else ("plain", "labels", "mask", "shifted")


def options_of(preset, kind):
    options = ["--eos-id", EOS] if preset in ("bridge", "megatron") else []
    if kind == "shifted":
        options += ["--columns", f"aligned,{'loss_mask' if preset == 'bridge' else 'labels'}:token:target-shifted"]
    return options


# ---- changing files -----------------------------------------------------------------------------------------------------------

class TableFile:
    """An Arrow stream or Parquet file as lists, to be written again with other values."""

    def __init__(self, path):
        self.path, self.bytes = path, path.read_bytes()
        table = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_stream(self.bytes).read_all()
        self.schema = table.schema
        self.columns = {name: table.column(name).to_pylist() for name in table.schema.names}

    def write(self, columns, schema=None):
        table = pa.table(columns, schema=schema or self.schema)
        if self.path.suffix == ".parquet":
            pq.write_table(table, self.path, compression="zstd", row_group_size=3)
        else:
            with pa.OSFile(str(self.path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table, max_chunksize=4)

    def write_with(self, column, row, values):
        changed = {name: list(rows) for name, rows in self.columns.items()}
        changed[column][row] = values
        self.write(changed)

    def restore(self):
        self.path.write_bytes(self.bytes)


class Dataset:
    """A packed dataset that is damaged and mended again and again."""

    def __init__(self, folder):
        self.folder = folder
        self.manifest = (folder / ".shardpack/manifest.json").read_bytes()

    def verify(self):
        found = json.loads(run_any(TOOL, "verify", self.folder, "--json"))
        return found["ok"], found["issues"]

    def restated(self):
        """What verify finds when every hash is made to match."""
        run(RESTATE, self.folder)
        found = self.verify()
        (self.folder / ".shardpack/manifest.json").write_bytes(self.manifest)
        return found


def run_any(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode in (0, 1), f"{command}: exit {done.returncode}\n{done.stderr}"
    assert (done.returncode == 0) == json.loads(done.stdout)["ok"]
    return done.stdout


def names(issues, file, row=None, kinds=None):
    return any(issue["file"] == file and (row is None or issue["row"] == row) and (kinds is None or issue["kind"] in kinds)
               for issue in issues)


def other_value(column, value):
    if column in ("loss_mask", "attention_mask") and value in (0, 1):
        return 1 - value
    return 5 if value == NONE else value + 1 if value < 60_000 else value - 1


def check_change(dataset, file, row, what, own_value):
    """`own_value`: it may be one that the sources could have had, so that their fingerprint alone tells."""
    ok, issues = dataset.restated()
    assert not ok, f"{what}: not found by its value"
    if own_value:
        assert names(issues, file, row) or names(issues, file, kinds=("fingerprint",)), f"{what}: {issues}"
    else:
        assert names(issues, file, row, ("ids", "column", "row")), f"{what}: {issues}"


def change_table(dataset, path, preset, kind, row, segments):
    """Every column of one row: values at its ends, at a segment's ends and in its middle; one more, one less, none."""
    file = TableFile(path)
    ends = [sum(len(ids) for ids, _ in segments[:s + 1]) for s in range(len(segments))]
    for column, rows in file.columns.items():
        if kind != "labels" and kind in kinds_of(preset)[1:] and column not in LABELS:
            continue  # as with labels
        stored = rows[row]
        places = {0, 1, ends[0] - 1, ends[0], ends[-1], len(stored) - 1}
        for place in sorted(place for place in places if place < len(stored)):
            values = list(stored)
            values[place] = other_value(column, values[place])
            file.write_with(column, row, values)
            inside = place < ends[-1]
            own = inside and (column in ("input_ids", "inputs", "tokens") or column in LABELS and kind != "plain")
            check_change(dataset, path.name, row, f"{preset} {kind} {column}[{place}]", own)
        ok, issues = dataset.verify()
        assert not ok and names(issues, path.name, kinds=("checksum", "size")), f"{preset} {column}: {issues}"
        for values in (stored + stored[-1:], stored[:-1]):
            file.write_with(column, row, values)
            check_change(dataset, path.name, row, f"{preset} {kind} {column} of {len(values)} values", False)
        file.write_with(column, row, stored[:-1] + [None])
        ok, issues = dataset.restated()
        assert not ok and names(issues, path.name, kinds=("damaged",)), f"{preset} {column} with a null: {issues}"
    change_rows(dataset, file, preset)
    file.restore()


def change_rows(dataset, file, preset):
    """Two rows in each other's place, one missing, other columns, another type."""
    swapped = {name: [rows[1], rows[0], *rows[2:]] for name, rows in file.columns.items()}
    file.write(swapped)
    ok, issues = dataset.restated()
    assert not ok and names(issues, file.path.name), f"{preset} swapped: {issues}"
    file.write({name: rows[1:] for name, rows in file.columns.items()})
    ok, issues = dataset.restated()
    assert not ok and names(issues, file.path.name, kinds=("header",)), f"{preset} short: {issues}"
    first = next(iter(file.columns))
    fields = [field.with_name("other") if field.name == first else field for field in file.schema]
    file.write({field.name: rows for field, rows in zip(fields, file.columns.values())}, pa.schema(fields))
    ok, issues = dataset.restated()
    assert not ok and names(issues, file.path.name, kinds=("header",)), f"{preset} renamed: {issues}"
    wider = [field.with_type(pa.list_(pa.int16())) if field.name == first else field for field in file.schema]
    file.write({name: [[value % 30_000 for value in values] for values in rows] if name == first else rows
                for name, rows in file.columns.items()}, pa.schema(wider))
    ok, issues = dataset.restated()
    assert not ok and names(issues, file.path.name, kinds=("header",)), f"{preset} of another type: {issues}"


def change_megatron(dataset, path, row, segments):
    whole, lengths = path.read_bytes(), [len(ids) for ids, _ in segments]
    for place, own in ((0, True), (lengths[0] - 1, False), (lengths[0] - 2, True), (L - 1, False)):
        at = 2 * (row * L + place)
        changed = bytearray(whole)
        changed[at] ^= 1
        path.write_bytes(changed)
        check_change(dataset, path.name, row, f"megatron [{place}]", own)
    path.write_bytes(whole)
    idx = path.with_suffix(".idx")
    whole = idx.read_bytes()
    rows, = struct.unpack_from("<q", whole, 18)
    for at, found in ((0, None), (9, None), (17, None), (18, None), (26, None), (34 + 4 * row, row), (34 + 4 * rows + 8 * row, row),
                      (34 + 12 * rows + 8 * row, row)):
        changed = bytearray(whole)
        changed[at] ^= 1
        idx.write_bytes(changed)
        ok, issues = dataset.restated()
        assert not ok and names(issues, idx.name, kinds=("header",)), f"megatron .idx byte {at}: {issues}"
        assert found is None or any(f"row {found}:" in issue["message"] for issue in issues), issues
    idx.write_bytes(whole)


def change_hidden_arrays(dataset, preset, kind):
    """What is not in the trainer's files: boundaries, sources, columns that the preset does not show, first labels."""
    shard = sorted((dataset.folder / ".shardpack").glob("shard-*"))[0]
    for path in sorted(shard.glob("*.npy")):
        whole = path.read_bytes()
        path.write_bytes(whole[:128] + bytes([whole[128] ^ 1]) + whole[129:])
        ok, issues = dataset.verify()
        assert not ok and names(issues, f"{shard.name}/{path.name}", kinds=("checksum", "offsets", "header")), f"{preset} {path.name}: {issues}"
        ok, issues = dataset.restated()
        assert not ok, f"{preset} {kind} {path.name}: not found by its value"
        path.write_bytes(whole)


def tampering(preset):
    def case(work):
        for container in CONTAINERS[preset]:
            for kind in kinds_of(preset) if container == CONTAINERS[preset][0] else kinds_of(preset)[:2][-1:]:
                records = records_of(preset, kind)
                write_jsonl(work / "in.jsonl", records)
                out = work / f"{container}-{kind}"
                pack(work / "in.jsonl", out, preset, "--as", container, "--shard-bytes", 1_500 if preset == "megatron" else 7_000, *options_of(preset, kind))
                dataset = Dataset(out)
                assert dataset.verify() == (True, []) and dataset.restated() == (True, [])
                paths = sorted(path for path in out.iterdir() if path.suffix in (".arrow", ".parquet", ".bin"))
                assert len(paths) > 1
                rows = list(segments_of_shards(out, records))
                first, count = (shard["rows"] for shard in json.loads(dataset.manifest)["shards"][:2])
                row = max(range(first, first + count), key=lambda r: (len(rows[r]) > 1, sum(len(ids) for ids, _ in rows[r]) < L))
                if container == "megatron":
                    change_megatron(dataset, paths[1], row - first, rows[row])
                else:
                    change_table(dataset, paths[1], preset, kind, row - first, rows[row])
                change_hidden_arrays(dataset, preset, kind)
                change_metadata(dataset, preset, container)
                assert dataset.verify() == (True, [])
    case.__name__ = f"tampering_{preset}"
    return case


def change_metadata(dataset, preset, container):
    """What says which files there are, and how long rows get."""
    texts = {"arrow": ["dataset_info.json", "state.json"]}.get(container, []) + (["packed_metadata.jsonl"] if preset == "bridge" else [])
    for name in texts:
        path = dataset.folder / name
        whole = path.read_text()
        digit = max(i for i, character in enumerate(whole) if character.isdigit())
        path.write_text(whole[:digit] + str((int(whole[digit]) + 1) % 10) + whole[digit + 1:])
        ok, issues = dataset.restated()
        assert not ok and names(issues, name, kinds=("metadata",)), f"{preset} {name}: {issues}"
        path.write_text(whole)


# ---- unpack -------------------------------------------------------------------------------------------------------------------

def sources_come_back(work):
    """Every preset, container and kind of labels: ids and columns value for value, in source order; against the sources too."""
    for preset, containers in CONTAINERS.items():
        for container in containers:
            for kind in kinds_of(preset):
                records = records_of(preset, kind)
                write_jsonl(work / "in.jsonl", records)
                out, back = work / f"{preset}-{container}-{kind}", work / "back"
                pack(work / "in.jsonl", out, preset, "--as", container, "--shard-bytes", 7_000, *options_of(preset, kind))
                run(TOOL, "verify", out, "--against", work / "in.jsonl", "-q")
                run(TOOL, "unpack", out, "-o", back, "--force", "-q")
                assert [json.loads(line) for line in (back / "in.jsonl").read_text().splitlines()] == records, (preset, container, kind)
                if kind != kinds_of(preset)[-1]:
                    continue
                for suffix in ("arrow", "parquet"):
                    run(TOOL, "unpack", out, "-o", back, "--force", "-q", "--as", suffix)
                    file = TableFile(back / f"in.{suffix}")
                    assert file.columns == {name: [record[name] for record in records] for name in records[0]}
                    assert file.schema.field("input_ids").type.value_type == pa.int32()
                run(TOOL, "unpack", out, "-o", back, "--force", "-q", "--as", "npy")
                assert npy(back / "in.npy")[0] == [token for record in records for token in record["input_ids"]]
                for name in records[0]:
                    if name in ("labels", "loss_mask", "token_type_ids"):
                        assert npy(back / f"in.{name}.npy")[0] == [value for record in records for value in record[name]]


def policies_are_undone(work):
    """Split, added BOS and EOS, gaps, repeated, fill and dropped rows, partitions, a limit on segments, other position starts."""
    split = ("--overlong", "split", "--append-eos", "--prepend-bos", "--bos-id", 3, "--eos-id", EOS)
    runs = {
        "hf": [split, ("--segment-multiple", 8), ("--tail", "fill", "--rows-multiple", 16), ("--position-start", 2),
               ("--rows-multiple", 16, "--shard-bytes", 9_000), ("--max-segments", 2)],
        "trl": [split, ("--rows-multiple", 16), ("--partition-tokens", 3_000)],
        "torchtune": [split, ("--segment-multiple", 8), ("--max-segments", 3)],
        "maxtext": [split, ("--segment-multiple", 8), ("--tail", "fill", "--rows-multiple", 16)],
        "bridge": [("--overlong", "split", "--eos-id", EOS), ("--rows-multiple", 16, "--eos-id", EOS),
                   ("--partition-tokens", 3_000, "--eos-id", EOS), ("--balance", "attention", "--eos-id", EOS)],
        "llamafactory": [split], "axolotl": [split],
    }
    for preset, variants in runs.items():
        for number, options in enumerate(variants):
            for kind in ("labels", "mask"):
                least = 2 if preset == "bridge" else 1
                records = sequences(kind, 120, 3 * L if "split" in options else L, least, seed=number)
                for i, record in enumerate(records):
                    record["token_type_ids"] = [i % 2] * len(record["input_ids"])
                write_jsonl(work / "in.jsonl", records)
                out, back = work / f"{preset}-{kind}-{number}", work / "back"
                pack(work / "in.jsonl", out, preset, *options)
                run(TOOL, "verify", out, "--against", work / "in.jsonl", "-q")
                run(TOOL, "unpack", out, "-o", back, "--force", "-q")
                found = [json.loads(line) for line in (back / "in.jsonl").read_text().splitlines()]
                if preset == "bridge" and "split" in options:  # a last piece of one token is removed
                    records = cut_as_removed(out, records)
                assert found == records, (preset, options)
    records = sequences("labels", 120, L, 2)
    write_jsonl(work / "in.jsonl", records)
    pack(work / "in.jsonl", work / "drop", "bridge", "--eos-id", EOS, "--tail", "drop", "--rows-multiple", 16)
    run(TOOL, "verify", work / "drop", "--against", work / "in.jsonl", "-q")


def cut_as_removed(out, records):
    removed = out / ".shardpack/removed.csv"
    cut = [dict(record) for record in records]
    for line in removed.read_text().splitlines()[1:] if removed.exists() else []:
        _, record, first, tokens, _ = line.split(",")
        cut[int(record)] = {name: values[:int(first)] + values[int(first) + int(tokens):] for name, values in cut[int(record)].items()}
    return cut


def rows_are_shown(work):
    """inspect --row and --sequence show the same segments of every preset as of the native layout."""
    for preset in CONTAINERS:
        records = records_of(preset, "plain")
        write_jsonl(work / "in.jsonl", records)
        out = work / preset
        pack(work / "in.jsonl", out, preset, *options_of(preset, "plain"))
        rows = list(segments_of_shards(out, records))
        for number in (0, len(rows) - 1):
            shown = json.loads(run(TOOL, "inspect", out, "--row", number, "--json").stdout)
            for segment, (ids, _) in zip(shown["segments"], rows[number]):
                few = segment["first_ids"] + segment["last_ids"]
                assert few == (ids[:3] + ids[-min(3, len(ids) - 3):] if len(ids) > 3 else ids), (preset, segment, ids)
            assert len(shown["segments"]) == len(rows[number])
        sequence = json.loads(run(TOOL, "inspect", out, "--sequence", 3, "--json").stdout)
        assert sum(piece["tokens"] for piece in sequence["pieces"]) == len(records[3]["input_ids"])


def main():
    cases = [tampering(preset) for preset in CONTAINERS] + [sources_come_back, policies_are_undone, rows_are_shown]
    for case in cases:
        if len(sys.argv) > 3 and case.__name__ not in sys.argv[3:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            case(pathlib.Path(folder))
        print(f"{case.__name__}: ok")


if __name__ == "__main__":
    main()
