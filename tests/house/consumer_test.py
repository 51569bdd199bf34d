"""cmake --install gives a package that another project finds, builds against and runs.

    consumer_test.py BUILD_TREE CONSUMER_PROJECT COMPILER COMPILER_FLAGS
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

build, project, compiler, flags = sys.argv[1:]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


with tempfile.TemporaryDirectory() as scratch:
    # Copied, so that nothing of the source tree is found by being near.
    shutil.copytree(project, f"{scratch}/project")
    prefix = f"{scratch}/prefix"
    run("cmake", "--install", build, "--prefix", prefix)
    run("cmake", "-S", f"{scratch}/project", "-B", f"{scratch}/build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CXX_FLAGS={flags}")
    run("cmake", "--build", f"{scratch}/build")

    scans = run(f"{scratch}/build/consumer", scratch)
    assert "packed 6 sequences into 2 rows, verified" in scans, scans

    version = run(f"{prefix}/bin/shardpack", "--version")
    assert version.startswith("shardpack "), version

    exported = "".join(p.read_text() for p in pathlib.Path(prefix).rglob("*.cmake"))
    for folder in (build, str(pathlib.Path(project).parent.parent)):
        assert folder not in exported, f"the installed package refers to {folder}"
    print(scans.strip())
