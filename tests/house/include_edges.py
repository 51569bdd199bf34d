"""The layers of the tree, checked on its #include lines: dependencies run one way, heavy headers stay where they belong, and files
are touched in one place.

    include_edges.py SOURCE_TREE

Exits 1 with a line for every edge that breaks a rule.
"""
import pathlib
import re
import sys

#A layer may include itself and these.
BELOW = {
    "base": [],
    "core": ["base"],
    "exec": ["base"],
    "io": ["batch_manifest.h", "exec", "core", "base"],
    "jobs": ["io", "exec", "core", "base"],
    "report": ["jobs", "io", "exec", "core", "base"],
    "cli": ["report", "jobs", "io", "exec", "core", "base"],
}

#The layer that a public header belongs to : the lowest folder that may know of it.
PUBLIC = {
    "base": ["byte_buffer.h", "error.h", "types.h", "version.h", "progress.h"],
    "core": ["assignment.h", "batch_cost.h", "batch_plan.h", "batch_prediction.h", "bounds.h", "byte_buffer.h",
             "certificate.h", "column.h", "fingerprint.h", "group_key.h", "item.h",
             "length_histogram.h", "ltd_row_table.h", "ltd_schedule.h", "ltd_selection.h", "packed_row.h", "packer.h",
             "packing_plan.h", "parallelism.h", "presets.h", "row_balance.h", "sequence_index.h",
             "sequence_ranges.h", "sequence_source.h", "training_shape.h"],
    "exec": ["run_context.h", "thread_pool.h"],
    "io": ["batch_manifest.h", "formats.h", "ltd_manifest.h", "manifest.h", "row_sink.h"],
    "jobs": ["batch_sweep.h", "inspect.h", "jobs.h", "lint.h", "ltd.h", "sweep.h"],
    "cli": ["shardpack.h"],
}
LAYER_OF_PUBLIC = {header: layer for layer, headers in PUBLIC.items() for header in headers}

#core computes; it never reads a file, a clock or a thread.
FORBIDDEN_IN_CORE = {"filesystem", "fstream", "iostream", "chrono", "thread", "cstdio", "ctime"}

#Slow to compile, or meant to be replaceable : each in these files alone.
CONFINED = {
    r"nlohmann/.*": ["src/io/json.cpp"],
    r"CLI/.*": 1,  # in one file, whichever
    r"spdlog/.*": 1,
    r"xxhash\.h": ["src/base/hash.cpp", "src/base/hash_avx2.cpp"],  # compiled for different processors
    r"(coin/)?(Clp|Coin).*": ["src/core/covering_program.cpp"],
    r"(arrow|parquet)/.*": "src/io/arrow/",  # the folder that is compiled only where there is Arrow
    r"simdjson\.h": 1,
    r"(eigen3/)?Eigen/.*": 2,
}

#Calls that open, change or sync files go through src / io / system_calls.h, so that tests can let each of them fail.
SYSTEM_CALL = re.compile(r"(?:(?<!\w)::|\bstd::|\bfs::)(open|creat|mkostemp|pread|pwrite|fsync|fdatasync|ftruncate|fallocate|mkdir|rmdir|"
                         r"unlink|rename|renameat2|remove_all|create_director\w+|copy_file|resize_file|utimensat|flock|sync_file_range)\(")
MAY_CALL = {"src/io/system_calls.cpp", "src/cli/signals.cpp"}  # the latter opens /dev/null in place of a closed stream

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of(path):
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1]
    return LAYER_OF_PUBLIC.get(parts[-1].removesuffix(".in"))


def layer_of_included(header):
    folder, _, name = header.partition("/")
    if folder == "shardpack":
        return LAYER_OF_PUBLIC.get(name)
    return folder if folder in BELOW else None


def check(tree):
    """Every broken rule as a line, and the number of edges that were looked at."""
    faults, edges, users = [], 0, {
pattern: set() for pattern in CONFINED}
    files = sorted(p for folder in ("src", "include") for p in (tree / folder).rglob("*") if p.suffix in (".h", ".cpp", ".in"))
    for file in files:
        path = file.relative_to(tree).as_posix()
        layer = layer_of(path)
        if layer not in BELOW:
            faults.append(f"{path}: belongs to no layer; give it one in tests/house/include_edges.py")
            continue
        text = file.read_text()
        for call in SYSTEM_CALL.findall(text) if path not in MAY_CALL else ():
            faults.append(f"{path}: {call}() is called through src/io/system_calls.h")
        for style, header in INCLUDE.findall(text):
            edges += 1
            for pattern in CONFINED:
                if re.fullmatch(pattern, header):
                    users[pattern].add(path)
            if style == "<":
                if layer == "core" and header in FORBIDDEN_IN_CORE:
                    faults.append(f"{path}: core must not include <{header}>")
                continue
            target = layer_of_included(header)
            if target is None:
                faults.append(f'{path}: "{header}" belongs to no layer; give it one in tests/house/include_edges.py')
            elif path.startswith("include/") and not header.startswith("shardpack/"):
                faults.append(f'{path}: a public header must not include "{header}", which is not installed')
            elif target != layer and target not in BELOW[layer]:
                faults.append(f'{path}: {layer} must not include "{header}" of {target}')
    for pattern, where in CONFINED.items():
        if isinstance(where, list):
            extra = users[pattern] - set(where)
        elif isinstance(where, str):
            extra = {path for path in users[pattern] if not path.startswith(where)}
        else:
            extra = users[pattern] if len(users[pattern]) > where else set()
        for path in sorted(extra):
            faults.append(f"{path}: headers {pattern} are confined to {f'{where} file(s)' if isinstance(where, int) else where}")
    return faults, edges


def self_test():
    """A tree with one fault of each kind gives that many lines."""
    import tempfile

    broken = {
        "src/base/a.cpp": '#include "core/b.h"\n',
        "src/core/b.h": '#include <chrono>\n#include "shardpack/jobs.h"\n',
        "src/io/c.cpp": "#include <xxhash.h>\n",
        "src/io/arrow/f.cpp": "#include <arrow/api.h>\n",
        "src/io/g.cpp": "#include <arrow/api.h>\n",
        "src/cli/d.cpp": '#include <CLI/CLI.hpp>\n#include "nowhere/x.h"\n',
        "src/cli/e.cpp": "#include <CLI/CLI.hpp>\n",
        "src/io/f.cpp": "x = ::open(a);\ny = sys::open(a) + Files::rename(b);\n",
        "include/shardpack/jobs.h": '#include "io/file.h"\n',
        "include/shardpack/new.h": "",
    }
    with tempfile.TemporaryDirectory() as folder:
        for path, text in broken.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        faults, _ = check(pathlib.Path(folder))
    assert len(faults) == 11, "\n".join(faults)


if __name__ == "__main__":
    self_test()
    found, looked_at = check(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or f"{looked_at} includes, every one downwards")
    sys.exit(bool(found) or looked_at < 100)
