"""Recordings from strangers: a refusal in one sentence, soon, in little memory, and nothing for the terminal but text."""
import fcntl
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

from support import BUILD, DATA, HANGSCOPE, SANITIZED, Case, main

SCOPE = DATA / "scope/watched-little32.bin"
MEMORY = 1 << 30


class Hostile(Case):
    def snapshot(self):
        done = self.hangscope("tee", "--prefix", self.prefix, "--heartbeat", "0", "--trigger", "boom", stdin=b"one\nboom\n")
        self.assertEqual(done.status, 0, done.err)
        return pathlib.Path(self.prefix + ".snapshot-0001")

    def ask(self, *words, seconds=10):
        """Ends soon, by itself, in little memory, with a status of ours."""
        def limit():
            if not SANITIZED:
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        done = subprocess.run([HANGSCOPE, *map(str, words)], capture_output=True, timeout=seconds * (5 if SANITIZED else 1),
                              stdin=subprocess.DEVNULL, preexec_fn=limit)
        self.assertIn(done.returncode, (0, 1, 2, 3), (words, done.stderr[-500:]))
        self.assertNotIn(b"\x1b", done.stdout + done.stderr, words)
        self.assertNotIn(b"\x07", done.stdout + done.stderr, words)
        return done

    def ask_all(self, folder):
        for words in (["why", folder], ["why", "--json", folder], ["report", "--force", "-o", self.folder / "page", folder],
                      ["export", "--to", "text", folder], ["cat", folder]):
            self.ask(*words)

    def change(self, folder, before, after):
        path = folder / "manifest.json"
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after, 1))

    def test_a_manifest_that_nests_deep(self):
        for member in ('"command": ', '"verdict": '):
            with self.subTest(member=member):
                folder = self.snapshot()
                self.change(folder, member, member + "[" * 100000 + "]" * 100000 + ', "x": ')
                self.ask_all(folder)
                shutil.rmtree(folder)

    def test_a_manifest_with_very_many_members(self):
        folder = self.snapshot()
        self.change(folder, '"verdict": {', '"verdict": {' + ",".join(f'"k{i}": 1' for i in range(120000)) + ", ")
        self.ask_all(folder)

    def test_escape_sequences_in_the_report(self):
        folder = self.snapshot()
        report = folder / "report.txt"
        report.write_bytes(b"\x1b]0;OWNED\x07" + report.read_bytes())
        done = self.ask("why", folder)
        self.assertIn(rb"\x1b]0;OWNED\x07", done.stdout)
        self.assertGreater(done.stdout.count(b"\n"), 1)  # its lines stay

    def test_what_waits_for_ever_in_place_of_a_file(self):
        for name in ("stdin.index", "report.txt", "manifest.json"):
            for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink("/dev/tty", path)):
                with self.subTest(name=name):
                    folder = self.snapshot()
                    (folder / name).unlink(missing_ok=True)
                    make(folder / name)
                    self.ask_all(folder)
                    shutil.rmtree(folder)

    def test_an_elf_that_waits_for_ever(self):
        folder = self.snapshot()
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.change(folder, '"command": ', f'"elf": "{pipe}", "command": ')
        self.ask_all(folder)
        for words in (["why", "--elf", pipe, SCOPE], ["show", "--elf", pipe, SCOPE]):
            self.assertEqual(self.ask(*words).returncode, 3)

    def test_a_sparse_scope_of_very_many_cores(self):
        """Its holes cost its writer nothing."""
        for field in ("core_count", "task_count"):
            for sound in (True, False):  # without a sound header all of it is searched for one
                with self.subTest(field=field, sound=sound):
                    path = self.folder / "sparse.bin"
                    shutil.copy(SCOPE, path)
                    self.patch(path, sound, **{field: 100_000, "scope_bytes": 0xfffffff0})
                    os.truncate(path, 1 << 32)
                    for words in (["why", "--stall", "0.1", path], ["show", path], ["export", "--to", "text", path]):
                        done = self.ask(*words)
                        self.assertEqual(done.returncode, 3, done.stdout[:200])
                        self.assertEqual(b"of each are possible" in done.stderr, sound, done.stderr)

    def patch(self, path, sound=True, **fields):
        """Changes fields of a scope's header; its check says then that it is as it was written, or not."""
        source, program = self.folder / "patch.c", self.folder / "patch"
        sets = "".join(f"  header->{name} = {value}u;\n" for name, value in fields.items())
        source.write_text(f"""#define HANGSCOPE_PORT "hangscope/port/linux.h"
#include "hangscope/hangscope.h"
#include <stdio.h>
int main(int argc, char** argv) {{
  static char bytes[sizeof(struct hangscope_header)];
  struct hangscope_header* const header = (struct hangscope_header*)(void*)bytes;
  FILE* const file = fopen(argv[argc - 1], "r+b");
  if (file == 0 || fread(bytes, sizeof bytes, 1, file) != 1) return 1;
{sets}  if ({int(sound)}) header->check = hangscope_header_check(header);
  rewind(file);
  return fwrite(bytes, sizeof bytes, 1, file) != 1 || fclose(file) != 0;
}}
""")
        include = pathlib.Path(__file__).resolve().parent.parent.parent / "include"
        subprocess.run(["cc", "-D_GNU_SOURCE", "-DHANGSCOPE_WATCH=1", "-DHANGSCOPE_DEFINE", "-I", include, "-o", program, source, "-pthread"], check=True)
        subprocess.run([program, path], check=True)

    def limited(self, what, limit, *words):
        return subprocess.run([HANGSCOPE, *map(str, words)], capture_output=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(what, (limit, resource.RLIM_INFINITY)))

    def test_a_limit_is_an_error_of_one_sentence(self):
        line = b"Trace 0: 0x7f0000001000 [00000000/00000000800%d0000/00000101/ff000000] %s\n"
        done = self.hangscope("tee", "--prefix", self.prefix, "--heartbeat", "0", "--size", "256M",
                              stdin=(line % (0, b"main") + line % (1, b"other")) * 800000)
        self.assertEqual(done.status, 0)
        done = self.limited(resource.RLIMIT_CPU, 1, "export", "--to", "chrome", "-o", self.folder / "trace.json", self.prefix)
        self.assertEqual((done.returncode, done.stderr.count(b"more CPU time than it may")), (3, 1), done.stderr)
        if SANITIZED:
            return
        # How much the libraries alone take depends on the machine.
        for mebibytes in range(24, 80, 4):
            done = self.limited(resource.RLIMIT_AS, mebibytes << 20, "report", "--force", "-o", self.folder / "page", self.prefix)
            if done.returncode != 127:
                break
        self.assertEqual((done.returncode, done.stderr.count(b"more memory than it may")), (3, 1), (mebibytes, done.stderr))

    def test_who_reads_recordings_has_limits(self):
        process = subprocess.Popen([HANGSCOPE, "why", "--stall", "30", SCOPE], stdout=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        limits = pathlib.Path(f"/proc/{process.pid}/limits")
        self.until(lambda: " 300 " in limits.read_text(), what="a limit of CPU time")
        if not SANITIZED:
            self.until(lambda: f" {8 << 30} " in limits.read_text(), what="a limit of memory")

    def test_the_second_interrupt_ends_an_export(self):
        """What it waits for then: a reader of its output that does not read."""
        reading, writing = os.pipe()
        os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096))  # it is full
        export = subprocess.Popen([HANGSCOPE, "export", "--to", "text", DATA / "scope/wrapped-little32.bin"], stdout=writing)
        self.addCleanup(self.end, export)
        os.close(writing)
        self.addCleanup(os.close, reading)
        self.until(lambda: "pipe_write" in pathlib.Path(f"/proc/{export.pid}/wchan").read_text() or export.poll() is not None,
                   what="a full pipe")
        self.assertIsNone(export.poll())
        export.send_signal(signal.SIGINT)
        time.sleep(0.2)
        export.send_signal(signal.SIGINT)
        self.assertEqual(export.wait(5), -signal.SIGINT)

    def test_the_number_of_a_dead_process_is_anothers(self):
        """Its scope's file is a dead one's: nothing that stands in it lasts."""
        abba = subprocess.Popen([pathlib.Path(BUILD) / "tests/abba"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, abba)
        abba.stdout.readline()
        scope = next(line.split()[-1] for line in pathlib.Path(f"/proc/{abba.pid}/maps").read_text().splitlines()
                     if line.endswith(".scope"))
        kept = self.folder / "kept.scope"
        shutil.copy(scope, kept)
        self.end(abba)
        other = subprocess.Popen(["sleep", "60"])
        self.addCleanup(self.end, other)
        self.patch(kept, pid=other.pid)
        begin = time.monotonic()
        done = self.ask("why", "--json", kept)
        self.assertLess(time.monotonic() - begin, 0.8 * (5 if SANITIZED else 1), "it looked for a second, as at a live one")
        self.assertNotIn(str(other.pid).encode(), done.stdout)


if __name__ == "__main__":
    main()
