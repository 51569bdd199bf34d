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


with tempfile.TemporaryDirectory() as scratch:
    readers = pathlib.Path(out, "readers")
    readers.mkdir(parents=True, exist_ok=True)
    for kind, (name, suffixes) in enumerate(KINDS):
        distribution = "fixed" if name == "npy-rows" else "uniform"
        run(sys.executable, generate, "--format", name, "--sequences", "6", "--max-tokens", "9", "--vocab", "8",
            "--distribution", distribution, "--out", f"{scratch}/{name}")
        parts = [pathlib.Path(f"{scratch}/{name}/train-00000{suffix}").read_bytes() for suffix in suffixes]
        seed = bytes([kind]) + b"".join(len(p).to_bytes(2, "little") + p for p in parts[:-1]) + parts[-1]
        (readers / name).write_bytes(seed)

    documents = pathlib.Path(out, "documents")
    documents.mkdir(parents=True, exist_ok=True)
    run(shardpack, "pack", f"{scratch}/megatron", "-L", "16", "-o", f"{scratch}/packed")
    run(shardpack, "scan", f"{scratch}/megatron", "-o", f"{scratch}/lengths.csv")
    for kind, file in enumerate(["packed/manifest.json", "packed/plan-00000.json", "lengths.csv"]):
        (documents / pathlib.Path(file).name).write_bytes(bytes([kind]) + pathlib.Path(scratch, file).read_bytes())
