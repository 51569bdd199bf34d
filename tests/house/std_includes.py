"""A file that uses a name of the standard library includes its header, itself or through the header of its own name: what other
headers bring along differs between releases of the standard library.

    std_includes.py SOURCE_TREE

Left out are names that come with every container (int64_t, size_t, move, less) and types of interfaces, which the headers of those
interfaces bring along (optional, map, variant). Exits 1 with a line for every file and header.
"""
import pathlib
import re
import sys

NAMES = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy copy_n count count_if equal equal_range fill fill_n find find_if "
                 "for_each generate is_sorted lower_bound make_heap max max_element merge min min_element minmax minmax_element mismatch "
                 "none_of nth_element partial_sort partition pop_heap push_heap remove remove_if replace reverse rotate search "
                 "set_difference sort stable_sort swap_ranges transform unique upper_bound",
    "array": "array",
    "atomic": "atomic",
    "bit": "bit_cast bit_ceil bit_width countr_zero endian has_single_bit popcount",
    "charconv": "from_chars to_chars",
    "chrono": "chrono",
    "cmath": "ceil exp floor hypot isfinite isnan llround log log2 lround pow round sqrt",
    "cstdlib": "abort exit getenv strtod strtoll",
    "cstring": "memcmp memcpy memset strerror strlen",
    "deque": "deque",
    "exception": "current_exception exception_ptr rethrow_exception",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "bind_front function greater invoke plus",
    "future": "async future",
    "limits": "numeric_limits",
    "mutex": "lock_guard mutex scoped_lock unique_lock",
    "numeric": "accumulate exclusive_scan gcd inclusive_scan inner_product iota lcm midpoint partial_sum reduce",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64 uniform_int_distribution",
    "sstream": "istringstream ostringstream stringstream",
    "thread": "jthread this_thread thread",
    "tuple": "make_tuple tie tuple",
    "utility": "exchange",
}
HEADER_OF = {name: header for header, names in NAMES.items() for name in names.split()}
FOLDERS = ["src", "include", "tests", "bench"]


def included(text):
    return set(re.findall(r"^#include <(\w+)>", text, re.MULTILINE))


def own_header(path, text, tree):
    """The text of the header that `path` implements or tests, or nothing."""
    for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
        if pathlib.Path(name).stem != path.stem.removesuffix("_test"):
            continue
        for folder in (tree / "src", tree / "include", tree / "tests", path.parent):
            if (folder / name).exists():
                return (folder / name).read_text()
    return ""


def missing(path, tree):
    """Headers that `path` has to include, each with the names that need it."""
    text = path.read_text()
    have = included(text) | included(own_header(path, text, tree))
    code = re.sub(r'//.*|"(\\.|[^"\\\n])*"', "", text)
    needed = {}
    for name in set(re.findall(r"\bstd::(?:ranges::)?(\w+)", code)):
        header = HEADER_OF.get(name)
        if header and header not in have:
            needed.setdefault(header, []).append(name)
    return needed


def main():
    tree = pathlib.Path(sys.argv[1])
    paths = sorted(path for folder in FOLDERS for path in (tree / folder).rglob("*") if path.suffix in (".h", ".cpp"))
    faults = [f"{path.relative_to(tree)}: #include <{header}> for {', '.join(sorted(names))}"
              for path in paths for header, names in sorted(missing(path, tree).items())]
    print("\n".join(faults) or f"{len(paths)} files include what they use")
    return 1 if faults or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
