#!/usr/bin/env python3
"""Runs the cases of this folder: each is a folder with a script `cmd` and what it must print.

    run.py --tool PATH [--data FOLDER] [--update] [CASE...]

A case runs in an empty scratch folder under `sh -eu`, with TERM=dumb, no terminal, and
  $shardpack  the tool        $data  small shards, made once a run by make_data.py      $case  the folder of the case
A case that exits with 77 is skipped, and its output says why. Expected: `stdout` and `stderr` (missing = empty), `exit` (missing = 0). In an expected line `{{...}}` is a regular expression, and
a line that is `...` alone stands for any number of lines. --update writes what was printed, keeping lines that still match.
"""
import argparse, os, pathlib, re, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent


def line_matches(pattern, line):
    parts = re.split(r"\{\{(.*?)\}\}", pattern)
    regex = "".join(part if at % 2 else re.escape(part) for at, part in enumerate(parts))
    return re.fullmatch(regex, line) is not None


def matches(expected, found):
    """Lines against lines; "..." takes as many as it needs."""
    if not expected:
        return not found
    if expected[0] == "...":
        return any(matches(expected[1:], found[skip:]) for skip in range(len(found) + 1))
    return bool(found) and line_matches(expected[0], found[0]) and matches(expected[1:], found[1:])


def updated(expected, found):
    """What was found, with patterns of the old text kept where they match."""
    patterns = [line for line in expected if "{{" in line]
    return [next((p for p in patterns if line_matches(p, line)), line) for line in found]


def run_case(case, environment, update):
    with tempfile.TemporaryDirectory(prefix="shardpack-cli-") as scratch:
        done = subprocess.run(["sh", "-eu", str(case / "cmd")], cwd=scratch, env=dict(environment, case=str(case)), timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode == 77:
        print(f"skipped: {case.name}: {done.stdout.decode().strip()}")
        return []
    problems = []
    for name, found in (("stdout", done.stdout), ("stderr", done.stderr), ("exit", b"%d\n" % done.returncode)):
        file = case / name
        expected = file.read_text() if file.exists() else "0\n" if name == "exit" else ""
        found_lines = found.decode(errors="backslashreplace").splitlines()
        if matches(expected.splitlines(), found_lines):
            continue
        if update:
            text = "".join(line + "\n" for line in updated(expected.splitlines(), found_lines))
            if text in ("", "0\n" if name == "exit" else ""):
                file.unlink(missing_ok=True)
            else:
                file.write_text(text)
        problems.append(f"{name} expected:\n{expected}{name} found:\n" + "".join(line + "\n" for line in found_lines))
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()

    names = options.cases or sorted(path.parent.name for path in HERE.glob("*/cmd"))
    data = tempfile.mkdtemp(prefix="shardpack-cli-data-")
    try:
        subprocess.run([sys.executable, str(HERE / "make_data.py"), data], check=True)
        environment = {"PATH": os.environ["PATH"], "HOME": data, "TERM": "dumb", "LC_ALL": "C.UTF-8", "TZ": "UTC",
                       "shardpack": str(pathlib.Path(options.tool).resolve()), "data": data, "python": sys.executable}
        failed = []
        for name in names:
            problems = run_case(HERE / name, environment, options.update)
            if problems:
                failed.append(name)
                print(f"{'updated' if options.update else 'FAILED'}: {name}")
                if not options.update:
                    print("\n".join(problems))
    finally:
        shutil.rmtree(data)
    print(f"{len(names) - len(failed)} of {len(names)} cases as expected")
    return 1 if failed and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
