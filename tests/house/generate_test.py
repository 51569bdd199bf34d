"""data/generate.py: every format holds the same sequences, read back here by other code; the bytes never change.

    generate_test.py GENERATE_PY
"""
import gzip
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

GENERATE = sys.argv[1]
EOS = 50256


def generate(folder, *arguments):
    subprocess.run([sys.executable, GENERATE, *arguments, "--out", folder], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return folder


def cut(ids, ends):
    return [part.tolist() for part in np.split(ids, ends)][:len(ends)]


def cut_at(ids, delimiter, before):
    """Sequences of a stream whose delimiter is the last token of each (or the first: before=True)."""
    at = np.flatnonzero(ids == delimiter)
    return cut(ids, np.append(at[1:], len(ids)) if before else at + 1)


def read_shard(fmt, stem):
    """Sequences of one generated file."""
    if fmt == "megatron":
        head = pathlib.Path(f"{stem}.idx").read_bytes()
        count = int.from_bytes(head[18:26], "little")
        lengths = np.frombuffer(head, "<i4", count, 34)
        ids = np.fromfile(f"{stem}.bin", {8: "<u2", 4: "<i4"}[head[17]])
        assert len(head) == 34 + 12 * count + 8 * (count + 1)
        return cut(ids, np.cumsum(lengths))
    if fmt.startswith("jsonl"):
        data = pathlib.Path(f"{stem}.{fmt}").read_bytes()
        if fmt == "jsonl.gz":
            data = gzip.decompress(data)
        elif fmt == "jsonl.zst":
            data = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
        return [json.loads(line)["input_ids"] for line in data.splitlines()]
    if fmt == "npy-rows":
        return np.load(f"{stem}.npy").tolist()
    if fmt == "npy-lengths":
        return cut(np.load(f"{stem}.npy"), np.cumsum(np.load(f"{stem}.lengths.npy")))
    if fmt == "npy-offsets":
        offsets = np.load(f"{stem}.offsets.npy")
        assert offsets[0] == 0
        return cut(np.load(f"{stem}.npy"), offsets[1:])
    if fmt == "raw-lengths":
        return cut(np.fromfile(f"{stem}.raw", "<u2"), np.cumsum(np.load(f"{stem}.lengths.npy")))
    if fmt == "raw":
        return cut_at(np.fromfile(f"{stem}.raw", "<u2"), EOS, before=False)
    if fmt == "nanogpt":
        return cut_at(np.fromfile(f"{stem}.bin", "<u2"), EOS, before=False)
    if fmt == "llmc":
        header = np.fromfile(f"{stem}.bin", "<i4", 256)
        ids = np.fromfile(f"{stem}.bin", "<u2", offset=1024)
        assert header[:3].tolist() == [20240520, 1, len(ids)] and not header[3:].any()
        return cut_at(ids, EOS, before=True)
    if fmt == "olmo":
        rows = [line.split(",") for line in gzip.decompress(pathlib.Path(f"{stem}.csv.gz").read_bytes()).decode().splitlines()]
        assert [int(r[0]) for r in rows] == [0] + [int(r[1]) for r in rows[:-1]]
        return cut(np.fromfile(f"{stem}.npy", "<u2"), [int(r[1]) for r in rows])
    assert fmt == "datatrove"
    assert pathlib.Path(f"{stem}.ds.metadata").read_text().splitlines()[0].split("|")[1] == "2"
    return cut(np.fromfile(f"{stem}.ds", "<u2"), np.fromfile(f"{stem}.ds.index", "<u8").astype(np.int64))


def read(fmt, folder, shards):
    return [sequence for i in range(shards) for sequence in read_shard(fmt, f"{folder}/train-{i:05}")]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        common = ["--sequences", "300", "--shards", "3", "--seed", "5"]
        reference = read("megatron", generate(f"{scratch}/reference", *common), 3)
        lengths = [len(sequence) for sequence in reference]
        assert len(reference) == 300 and min(lengths) >= 1 and max(lengths) <= 2048 and len(set(lengths)) > 100
        assert max(max(sequence) for sequence in reference) < EOS

        for fmt in ("jsonl", "jsonl.gz", "jsonl.zst", "npy-lengths", "npy-offsets", "raw-lengths", "datatrove"):
            assert read(fmt, generate(f"{scratch}/{fmt}", "--format", fmt, *common), 3) == reference, fmt
        for fmt in ("raw", "nanogpt", "olmo"):
            expected = [sequence[:-1] + [EOS] for sequence in reference]
            assert read(fmt, generate(f"{scratch}/{fmt}", "--format", fmt, *common), 3) == expected, fmt
        expected = [[EOS] + sequence[1:] for sequence in reference]
        assert read("llmc", generate(f"{scratch}/llmc", "--format", "llmc", *common), 3) == expected

        fixed = ["--sequences", "40", "--distribution", "fixed", "--max-tokens", "64"]
        rows = read("npy-rows", generate(f"{scratch}/rows", "--format", "npy-rows", *fixed), 1)
        assert rows == read("megatron", generate(f"{scratch}/fixed", *fixed), 1) and {len(row) for row in rows} == {64}

        wide = read("megatron", generate(f"{scratch}/wide", "--vocab", "128256", "--sequences", "200"), 1)
        assert 65535 < max(max(sequence) for sequence in wide) < 128255

        # Pinned: benchmarks and documents quote figures of generated data.
        for distribution, known in (("lognormal", "39533fc6a015b714"), ("mixed", "8dfc0c968c175ecd"), ("uniform", "ab2f8c3c401c6dc2")):
            folder = generate(f"{scratch}/{distribution}", "--sequences", "2000", "--distribution", distribution)
            digest = hashlib.sha256(pathlib.Path(folder, "train-00000.bin").read_bytes()
                                    + pathlib.Path(folder, "train-00000.idx").read_bytes()).hexdigest()
            assert digest.startswith(known), f"{distribution}: {digest}"
    print("13 formats hold the same sequences; bytes as ever")


if __name__ == "__main__":
    main()
