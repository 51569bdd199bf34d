"""First inputs of the fuzz targets: small valid files.

    seeds.py SHARDPACK GENERATE_PY FOLDER    writes FOLDER/readers, FOLDER/documents and FOLDER/folders
"""
import gzip
import pathlib
import re
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


def bgzf_block(plain):
    """As bgzip writes it: a gzip member whose header tells its length."""
    member = gzip.compress(plain, mtime=0)
    head = member[:3] + b"\x04" + member[4:10] + b"\x06\x00BC\x02\x00"
    return head + (len(member) + 7).to_bytes(2, "little") + member[10:]


def npy(dtype, values, shape=None):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape or (len(values),)}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"".join(
        value.to_bytes(int(dtype[2:]), "little", signed=dtype[1] != "u") for value in values)


def bare(path):
    """A manifest without its checksum and closing brace, nor indentation: small inputs are soon changed in every place."""
    return re.sub(rb"\n +", b"\n", pathlib.Path(path).read_bytes().split(b',\n  "checksum"')[0])


def bare_lines(path):
    """A journal without the hashes that its lines begin with."""
    return b"".join(line.split(b" ", 1)[1] for line in pathlib.Path(path).read_bytes().splitlines(True))


def bare_scan(path):
    return pathlib.Path(path).read_bytes()[:-32]


def unsealed(path):
    name = path.name
    if name == "manifest.json" or name.startswith("run-"):
        return bare(path)
    return bare_lines(path) if name.endswith(".journal") else bare_scan(path) if name.endswith(".scan") else path.read_bytes()


def whole_folder(task, folder):
    """What the target `folders` takes for the files of a folder."""
    framed_files = bytes([task])
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            name = str(path.relative_to(folder).parent / ("run.json" if path.name.startswith("run-") else path.name)).encode()
            text = unsealed(path)
            framed_files += bytes([len(name)]) + len(text).to_bytes(2, "little") + name + text
    return framed_files


with tempfile.TemporaryDirectory() as scratch:
    readers = pathlib.Path(out, "readers")
    readers.mkdir(parents=True, exist_ok=True)
    for kind, (name, suffixes) in enumerate(KINDS):
        distribution = "fixed" if name == "npy-rows" else "uniform"
        run(sys.executable, generate, "--format", name, "--sequences", "6", "--max-tokens", "9", "--vocab", "8",
            "--distribution", distribution, "--out", f"{scratch}/{name}")
        parts = [pathlib.Path(f"{scratch}/{name}/train-00000{suffix}").read_bytes() for suffix in suffixes]
        (readers / name).write_bytes(framed(kind, parts))
        if name == "jsonl":
            (readers / "bgzf").write_bytes(framed(2, [b"".join(bgzf_block(line) for line in parts[0].splitlines(True)) + bgzf_block(b"")]))
        if name == "jsonl.zst":
            (readers / "frames").write_bytes(framed(kind, [3 * parts[0]]))
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

    lists = [npy("<u2", [1, 2, 3, 4, 5, 6], (2, 3)), npy("|u1", [1, 1, 0, 0, 1, 1], (2, 3)), npy("<i2", [0, 2, 0, 1], (2, 2)),
             npy("<i4", [7, 8, 9, 10], (2, 2))]
    (readers / "side-lists").write_bytes(framed(len(KINDS) + 5, lists))

    documents = pathlib.Path(out, "documents")
    documents.mkdir(parents=True, exist_ok=True)
    run(shardpack, "pack", f"{scratch}/megatron", "-L", "16", "-o", f"{scratch}/packed")
    run(shardpack, "scan", f"{scratch}/megatron", "-o", f"{scratch}/lengths.csv")
    run(shardpack, "batch", jsonl, "--batch-size", "2", "--write-shards", "padded", "-o", f"{scratch}/batches")
    run(shardpack, "ltd", "-L", "16", "--kept-start", "8", "--ramp-steps", "4", "--layers", "4", "--micro-batch", "1",
        "--total-steps", "6", "-o", f"{scratch}/ltd")
    run(shardpack, "scan", jsonl, "--eos-id", "3", "--group-column", "id", "--drop-unlabeled", "--save", f"{scratch}/columns.scan")
    run(shardpack, "scan", f"{scratch}/megatron", "--partition-tokens", "40", "--save", f"{scratch}/megatron.scan")
    parts = pathlib.Path(scratch, "parts")
    run(shardpack, "pack", f"{scratch}/megatron", "-L", "16", "--no-derived", "--scan", f"{scratch}/megatron.scan", "--part", "1/1",
        "-o", parts)
    notes = next(pathlib.Path(scratch).glob("parts.partial/.shardpack-parts"))
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
            b"train-0.jsonl\r\n\ntrain-1.jsonl\n",
            bare_scan(f"{scratch}/columns.scan"),
            bare_lines(notes / "partition-00000.journal").splitlines()[-1],
            bare(next(notes.glob("run-*.json"))),
            pathlib.Path(scratch, "ltd/plateaus.json").read_bytes(),
            pathlib.Path(scratch, "ltd/steps.npy").read_bytes(),
            pathlib.Path(scratch, "ltd/ds_config.json").read_bytes(),
    ]):
        (documents / f"document-{kind}").write_bytes(bytes([kind]) + text)

    masked = pathlib.Path(scratch, "masked.jsonl")
    masked.write_bytes(b'{"input_ids": [7, 1, 8, 8], "token_type_ids": [0, 0, 1, 1], "masked_lm_positions": [1, 3], "masked_lm_ids": [5, 6],'
                       b' "next_sentence_labels": 1}\n')
    folders = pathlib.Path(out, "folders")
    folders.mkdir(parents=True, exist_ok=True)
    for name, *options in [
            ["native", "--columns", "labels,score"],
            ["zstd", "--compress", "zstd", "--no-derived", "--columns", "none", "--order", "by-strategy", "--tail", "fill",
             "--rows-multiple", "2"],
            ["hf", "--for", "hf", "--as", "arrow", "--columns", "labels"],
            ["trl", "--for", "trl", "--as", "parquet", "--columns", "labels"],
            ["bert", "--for", "bert", "--as", "parquet"],
            ["megatron", "--for", "megatron", "--eos-id", "4", "--columns", "none"],
            ["index", "--as", "index"]]:
        source = {"bert": masked, "index": f"{scratch}/megatron"}.get(name, jsonl)
        try:
            run(shardpack, "pack", source, "-L", "5", "--overlong", "truncate", *options, "-o", f"{scratch}/folder-{name}")
        except subprocess.CalledProcessError:
            if name not in ["hf", "trl", "bert"]:  # which a shardpack without Arrow cannot write
                raise
            continue
        (folders / name).write_bytes(whole_folder(0, f"{scratch}/folder-{name}"))
    for name in ["batches", "ltd"]:
        (folders / name).write_bytes(whole_folder(0, f"{scratch}/{name}"))
    (folders / "parts").write_bytes(whole_folder(1, f"{scratch}/parts.partial"))
    for name, files in [("megatron", list(pathlib.Path(scratch, "megatron").iterdir())), ("columns", [jsonl])]:
        sources = pathlib.Path(scratch, f"scanned-{name}")
        sources.mkdir()
        for path in [*files, pathlib.Path(scratch, f"{name}.scan")]:
            (sources / ("x.scan" if path.suffix == ".scan" else path.name)).write_bytes(path.read_bytes())
        (folders / f"scan-{name}").write_bytes(whole_folder(2, sources))
