"""The real tool on a real file system: killed at random moments, stopped by signals, and with a disk that is really full.

    real_faults.py SHARDPACK GENERATE.PY [--kills N] [--seed N]

After each: the output is absent, or the old one whole, or the new one whole; `--resume` gives the bytes of an undisturbed run,
with any number of threads; and nothing else is left.
"""
import argparse, hashlib, os, pathlib, random, resource, shutil, signal, subprocess, sys, tempfile, time

MARKER = ".shardpack-owner"


def tree(folder):
    """Hash of every file by its name; None when there is no such folder."""
    if not folder.is_dir():
        return None
    return {str(p.relative_to(folder)): hashlib.blake2b(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file() and p.name != MARKER}


def journaled(partial):
    """Finished shards that the journal names."""
    marker = partial / MARKER
    if not marker.is_file():
        return 0
    return sum(b'"folder"' in line for line in marker.read_bytes().split(b"\n"))


class Faults:
    def __init__(self, tool, place, seed):
        self.tool, self.place, self.random = tool, place, random.Random(seed)
        self.inputs = [place / "corpus", place / "lines"]
        self.options = ["-L", "1024", "--overlong", "split", "--shard-bytes", "3M", "--partition-tokens", "1M", "--rows-multiple", "8"]
        self.scratch = place / "scratch"
        self.out = self.scratch / "out"

    def command(self, *more):
        threads = self.random.choice([1, 2, 3, 8])
        return [self.tool, "pack", *self.inputs, *self.options, "-o", self.out, "--threads", str(threads), *more]

    def run(self, *more, expect=0, **settings):
        done = subprocess.run(self.command(*more), capture_output=True, text=True, timeout=300, **settings)
        assert done.returncode == expect, f"exit {done.returncode}, expected {expect}: {done.stderr}"
        return done.stderr

    def fresh(self):
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()

    def references(self):
        self.fresh()
        begin = time.monotonic()
        self.run()
        self.seconds = time.monotonic() - begin
        self.new = tree(self.out)
        self.fresh()
        self.run("--seed", "7")
        self.old = tree(self.out)
        shutil.copytree(self.out, self.place / "old")
        assert self.new != self.old

    def check_whole(self, old):
        found = tree(self.out)
        assert found in (old, self.new), "the output is neither the old nor the new one"
        others = {p.name for p in self.scratch.iterdir()} - {"out", "out.partial"}
        assert not others, f"left behind: {others}"
        return found == self.new

    def check_done(self):
        assert tree(self.out) == self.new, "not the bytes of an undisturbed run"
        assert [p.name for p in self.scratch.iterdir()] == ["out"], "something is left behind"
        assert not (self.out / MARKER).exists()

    def kills(self, count):
        """SIGKILL, and now and then SIGTERM or SIGINT, after a random time; again and again until a run ends by itself."""
        killed = resumed = replaced = 0
        while killed < count:
            self.fresh()
            force = self.random.random() < 0.5
            if force:
                shutil.copytree(self.place / "old", self.out)
            arguments = ["--force"] if force else []
            for attempt in range(self.random.randint(1, 5)):
                number = signal.SIGKILL if self.random.random() < 0.8 else self.random.choice([signal.SIGTERM, signal.SIGINT])
                process = subprocess.Popen(self.command(*arguments, *(["--resume"] if attempt else [])), stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE, text=True)
                time.sleep(self.random.uniform(0, 1.05 * self.seconds))
                process.send_signal(number)
                errors = process.communicate(timeout=300)[1]
                code = process.returncode
                published = self.check_whole(self.old if force else None)
                finished = journaled(self.scratch / "out.partial")
                if code == 0 or published:
                    break
                assert code in (-number, -signal.SIGKILL), f"exit {code}: {errors}"
                killed += 1
                replaced += force
                resumed += finished > 0
                if number != signal.SIGKILL and "stopped" in errors:
                    assert (finished > 0) == ("--resume" in errors) == (self.scratch / "out.partial").exists(), errors
            if not published:  # gone on with, or begun again
                self.run(*arguments, *(["--resume"] if self.random.random() < 0.8 else []))
            elif force:
                self.run(*arguments)
            else:
                self.run(expect=2)  # there it is; leftovers go all the same
            self.check_done()
        print(f"{killed} kills, {replaced} of them while replacing, {resumed} left finished shards: no loss", flush=True)

    def file_size_limit(self):
        """RLIMIT_FSIZE: a disk that is full for some files. Every limit that a file of the output crosses."""
        count = 0
        for limit in (0, 100, 4096, 100_000, 500_000, 1_000_000):
            self.fresh()
            message = self.run(expect=4, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            assert "File too large" in message, message
            assert not self.check_whole(None)
            self.run("--resume")
            self.check_done()
            count += 1
        print(f"{count} limits of file sizes: no loss", flush=True)

    def full_disk(self):
        """A file system of its own that is too small, then larger. \\return False when none can be mounted"""
        self.fresh()
        self.run("--compress", "zstd:1")  # of a size that is not known before, so that nothing is refused at the start
        compressed, need = tree(self.out), sum(p.stat().st_size for p in self.out.rglob("*")) // 1024
        self.fresh()
        count = 0
        for share in (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97):
            size = max(64, int(need * share))
            if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "shardpack-test", self.scratch], capture_output=True).returncode:
                return False
            try:
                message = self.run("--compress", "zstd:1", expect=4)
                finished = journaled(self.scratch / "out.partial")
                assert "No space left" in message, message
                assert tree(self.out) is None
                assert ("--resume" in message) == (finished > 0), message
                subprocess.run(["mount", "-o", f"remount,size={4 * need}k", self.scratch], check=True)
                self.run("--compress", "zstd:1", "--resume")
                assert tree(self.out) == compressed, "not the bytes of an undisturbed run"
                assert [p.name for p in self.scratch.iterdir()] == ["out"], "something is left behind"
                count += 1
            finally:
                subprocess.run(["umount", self.scratch], check=True)
        print(f"{count} full file systems: no loss", flush=True)
        return True

    def room_for_a_part(self):
        """A disk with room for half of the rows takes one of two parts, and the only part of one is refused before it writes."""
        self.fresh()
        self.run()
        need, saved = sum(p.stat().st_size for p in self.out.rglob("*")) // 1024, self.place / "saved.scan"
        subprocess.run([self.tool, "scan", *self.inputs, "--partition-tokens", "1M", "--save", saved, "-q"], check=True)
        self.fresh()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={int(need * 0.8)}k", "shardpack-test", self.scratch], check=True)
        try:
            message = self.run("--scan", saved, "--part", "1/1", expect=4)
            assert "are free" in message, message
            assert not list(self.scratch.rglob("*.npy")), "it began to write"
            self.run("--scan", saved, "--part", "1/2")
        finally:
            subprocess.run(["umount", self.scratch], check=True)
        print("a part is asked for its own room")

    def changed_input(self):
        """An input that grows while it is read is an error, and nothing of it is published."""
        self.fresh()
        original = next(self.inputs[0].glob("*.bin"))
        before = original.read_bytes()
        noticed = 0
        for part in (0.2, 0.5, 0.8):
            process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(part * self.seconds)
            original.write_bytes(before[:-2] + b"\0\0")
            errors = process.communicate(timeout=300)[1]
            original.write_bytes(before)
            if process.returncode == 0:  # it was faster
                assert tree(self.out) is not None
                shutil.rmtree(self.out)
                continue
            noticed += 1
            assert process.returncode == 3, errors
            assert not list(self.scratch.iterdir()), "something of it stays"
            self.run("--resume")
            self.check_done()
            shutil.rmtree(self.out)
        print(f"{noticed} of 3 inputs changed in time: noticed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("generate")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    place = pathlib.Path(tempfile.mkdtemp(prefix="shardpack-faults-"))
    try:
        faults = Faults(os.path.abspath(options.tool), place, options.seed)
        for form, folder, sequences in (("megatron", faults.inputs[0], 15000), ("jsonl.zst", faults.inputs[1], 1500)):
            subprocess.run([sys.executable, options.generate, "--format", form, "--sequences", str(sequences), "--max-tokens", "1500",
                            "--out", folder], check=True, stdout=subprocess.DEVNULL)
        faults.references()
        print(f"{len(faults.new)} files in {faults.seconds:.2f} s", flush=True)
        faults.kills(options.kills)
        faults.file_size_limit()
        if faults.full_disk():
            faults.room_for_a_part()
        else:
            print("skipped: full file systems; mounting one needs root")
        faults.changed_input()
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
