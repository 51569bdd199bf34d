"""First inputs of the fuzz targets: small valid files.

    seeds.py SHARDPACK GENERATE_PY FOLDER    writes FOLDER/readers and FOLDER/documents
"""
import pathlib
import subprocess
import sys
import tempfile

shardpack, generate, out = sys.argv[1:]

# In the order of kinds() in readers.cpp: a format of the generator, and the suffixes of its files, the data file first.
KINDS = [("megatron", [".bin", ".idx"]), ("jsonl", [".jsonl"]), ("jsonl.gz", [".jsonl.gz"]), ("jsonl.zst", [".jsonl.zst"]),
         ("npy-rows", [".npy"]), ("npy-lengths", [".npy", ".lengths.npy"]), ("npy-offsets", [".npy", ".offsets.npy"]),
         ("olmo", [".npy", ".csv.gz"]), ("llmc", [".bin"]), ("datatrove", [".ds", ".ds.index", ".ds.metadata"]), ("raw", [".raw"])]


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def framed(kind, parts):
    """What the target `readers` takes for files of these bytes."""
    return bytes([kind]) + b"".join(len(part).to_bytes(2, "little") + part for part in parts[:-1]) + parts[-1]


def npy(dtype, values):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({len(values)},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"".join(
        value.to_bytes(int(dtype[2:]), "little", signed=True) for value in values)


def bare(path):
    """A manifest without its checksum and closing brace."""
    return pathlib.Path(path).read_bytes().split(b',\n  "checksum"')[0]


with tempfile.TemporaryDirectory() as scratch:
    readers = pathlib.Path(out, "readers")
    readers.mkdir(parents=True, exist_ok=True)
    for kind, (name, suffixes) in enumerate(KINDS):
        distribution = "fixed" if name == "npy-rows" else "uniform"
        run(sys.executable, generate, "--format", name, "--sequences", "6", "--max-tokens", "9", "--vocab", "8",
            "--distribution", distribution, "--out", f"{scratch}/{name}")
        parts = [pathlib.Path(f"{scratch}/{name}/train-00000{suffix}").read_bytes() for suffix in suffixes]
        (readers / name).write_bytes(framed(kind, parts))
    lines = (b'{"input_ids": [1, 2, 3], "labels": [-100, 2, 3], "score": 0.5, "id": "a", "spans": [1]}\n'
             b'{"input_ids": [4], "labels": [4], "score": 2, "id": "b", "spans": []}\n')
    (readers / "columns").write_bytes(framed(len(KINDS), [lines]))
    side_files = [npy("<u2", [1, 2, 3, 4]), npy("<i8", [3, 1]), npy("<i4", [-100, 2, 3, 4])]
    (readers / "side-columns").write_bytes(framed(len(KINDS) + 1, side_files))
    jsonl = pathlib.Path(scratch, "columns.jsonl")
    jsonl.write_bytes(lines)
    for kind, container in enumerate(["arrow", "parquet"], len(KINDS) + 2):
        folder = pathlib.Path(scratch, container)
        try:  # a shardpack without Arrow has no such files to read either
            run(shardpack, "pack", jsonl, "-L", "4", "--for", "hf", "--as", container, "--columns", "labels", "-o", folder)
        except subprocess.CalledProcessError:
            continue
        (readers / container).write_bytes(framed(kind, [next(folder.glob(f"*.{container}")).read_bytes()]))
    if pathlib.Path(scratch, "arrow").exists():
        rows = pathlib.Path(scratch, "rows.jsonl")  # with numbers of themselves, so that they are data and indices in one
        rows.write_bytes(b'{"input_ids": [1, 2], "labels": [1, 2], "indices": 1}\n{"input_ids": [3], "labels": [3], "indices": 0}\n')
        run(shardpack, "pack", rows, "-L", "4", "-o", f"{scratch}/rows")
        run(shardpack, "unpack", f"{scratch}/rows", "--as", "arrow", "-o", f"{scratch}/rows-back")
        data = next(pathlib.Path(scratch, "rows-back").rglob("*.arrow")).read_bytes()
        state = b'{"_data_files": [{"filename": "data.arrow"}], "_indices_data_files": [{"filename": "indices.arrow"}]}'
        (readers / "indices").write_bytes(framed(len(KINDS) + 4, [state, data, data]))

    documents = pathlib.Path(out, "documents")
    documents.mkdir(parents=True, exist_ok=True)
    run(shardpack, "pack", f"{scratch}/megatron", "-L", "16", "-o", f"{scratch}/packed")
    run(shardpack, "scan", f"{scratch}/megatron", "-o", f"{scratch}/lengths.csv")
    run(shardpack, "batch", jsonl, "--batch-size", "2", "--write-shards", "padded", "-o", f"{scratch}/batches")
    run(shardpack, "ltd", "-L", "16", "--kept-start", "8", "--ramp-steps", "4", "--layers", "4", "--micro-batch", "1",
        "--total-steps", "6", "-o", f"{scratch}/ltd")
    shard = b'{"folder": "shard-00000-00000", "rows": 1, "tokens": 1, "segments": 1, "fingerprint": "' + b"0" * 32 + b'", "files": []}'
    for kind, text in enumerate([
            bare(f"{scratch}/packed/manifest.json"),
            pathlib.Path(scratch, "packed/plan-00000.json").read_bytes(),
            pathlib.Path(scratch, "lengths.csv").read_bytes(),
            bare(f"{scratch}/batches/manifest.json"),
            bare(f"{scratch}/ltd/manifest.json"),
            b'{"option seed": "0"}\n' + shard,
            pathlib.Path(scratch, "ltd/ds_config.json").read_bytes(),
            b"batch_size,pad_length,batches,seconds\n8,128,10,1.5\n",
            b"seed = 3\n[pack]\nseq-length = 2048\npacker = \"lpfhp\"\n",
    ]):
        (documents / f"document-{kind}").write_bytes(bytes([kind]) + text)
