#!/usr/bin/env python3
"""Stacks of real programs, as several compilers build them: which functions are on them, in which lines, and which of
these is the place that a person wants to read."""
import json
import pathlib
import re
import shutil
import subprocess

import support

SOURCES = pathlib.Path(__file__).resolve().parent / "stacks"


def line_of(source, mark):
    """The one that ends with the comment `mark`: "bank.cc:16"."""
    lines = (SOURCES / source).read_text().splitlines()
    found = [i + 1 for i, line in enumerate(lines) if line.endswith(f"// {mark}")]
    return f"{source}:{found[0]}"


class StackCase(support.Case):
    def build(self, compiler, source, *options, package=None):
        """Compiles one of the sources beside this file."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed (package {package or compiler})")
        program = self.folder / pathlib.Path(source).stem
        done = subprocess.run([compiler, SOURCES / source, *options, "-o", program], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        return program

    def start(self, program):
        """Starts it; it is ready when it says so."""
        process = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
        self.addCleanup(end)
        self.assertTrue(process.stdout.readline(), f"{program} said nothing")
        return process.pid

    def threads(self, pid, count, *words):
        """By their numbers, once `count` of them wait."""
        def look():
            outcome = self.hangscope("why", f"pid:{pid}", "--json", *words)
            lines = [json.loads(line) for line in outcome.out.splitlines()]
            found = {line["tid"]: line for line in lines if line["type"] == "thread"}
            waits = [thread for thread in found.values() if "waits_for" in thread and thread["stack"]]
            return found if len(waits) == count else None
        return self.until(look, what=f"{count} threads wait")

    @staticmethod
    def places(thread):
        """ "function  file:line" of the frames of the program and of what was compiled into it."""
        return [f"{frame.get('function', '')}  {frame['source']}" for frame in thread["stack"] if "source" in frame]

    @staticmethod
    def own(thread):
        """The frames that are no library's."""
        return [frame.get("function", "?") for frame in thread["stack"] if not frame.get("of_system")]

    @staticmethod
    def where(thread):
        return f"{thread['where'].get('function', '')}  {thread['where'].get('source', '')}"


class Compilers(StackCase):
    def check_bank(self, program, *, inlined_only=False):
        pid = self.start(program)
        threads = self.threads(pid, 3)
        workers = [thread for tid, thread in threads.items() if tid != pid]
        for thread in workers:
            places = self.places(thread)
            enter = f"bank::Account::Enter(std::mutex&)  {line_of('bank.cc', 'waits')}"
            self.assertEqual(enter, self.where(thread))
            at = places.index(enter)
            self.assertRegex(places[at + 1], rf"^bank::Transfer<.*>\(.*\)  {line_of('bank.cc', 'calls')}$")
            # What the standard library has between is there, and is no place.
            self.assertIn("std::mutex::lock()", [place.split("  ")[0] for place in places[:at]])
        return workers

    def test_of_clang_have_lines_and_what_was_compiled_into_another(self):
        self.check_bank(self.build("clang++", "bank.cc", "-g", "-O2", "-pthread", package="clang"))

    def test_of_gcc_the_same(self):
        self.check_bank(self.build("g++", "bank.cc", "-g", "-O2", "-pthread"))

    def test_name_lambdas_by_the_function_that_they_are_in(self):
        for compiler in ("g++", "clang++"):
            with self.subTest(compiler):
                for thread in self.check_bank(self.build(compiler, "bank.cc", "-g", "-O0", "-pthread", package="clang")):
                    lambdas = [place for place in self.places(thread) if place.startswith("main::<lambda>  ")]
                    self.assertEqual(1, len(lambdas), self.places(thread))
                    self.assertRegex(lambdas[0], r"  bank\.cc:\d+$")
                    for place in self.places(thread):
                        self.assertLessEqual(len(place), 120, "a template that nobody reads to its end")


class Rust(StackCase):
    # How each thread of bank.rs waits: the place, and its caller if that is another function.
    PLACES = {
        "one": (r"bank::main::\{closure#\d\}", "mutex"),
        "two": (r"bank::main::\{closure#\d\}", "mutex"),
        "channel": (r"bank::next(::<u64>)?", "channel"),
        "rwlock": (r"bank::depot::Depot::fill", "rwlock"),
        "barrier": (r"bank::main::\{closure#\d\}", "barrier"),
        "park": (r"bank::doze", "park"),
        "condition": (r"bank::main::\{closure#\d\}", "condition"),
        "bank": (r"bank::main", "join"),
    }

    def check(self, *options):
        program = self.build("rustc", "bank.rs", "-g", *options)
        threads = self.threads(self.start(program), len(self.PLACES))
        self.assertEqual(set(self.PLACES), {thread["name"] for thread in threads.values()})
        for thread in threads.values():
            function, mark = self.PLACES[thread["name"]]
            self.assertRegex(self.where(thread), rf"^{function}  {line_of('bank.rs', mark)}$")
            for function in self.own(thread):
                self.assertRegex(function, r"^<?bank::|^main$|^_start$|^__rust_try$", "no frame of the program")
            self.assertFalse(re.search("_R[NIC]|17h[0-9a-f]{16}", json.dumps(thread["stack"])), "a name as the linker has it")
            self.assertNotIn("stack_trouble", thread)
        by_name = {thread["name"]: thread for thread in threads.values()}
        if "-O" not in options:
            self.assertIn("<bank::depot::Depot as bank::depot::Work>::work", self.own(by_name["rwlock"]))

    def test_locks_channels_and_parked_threads_have_places_in_the_program(self):
        self.check()

    def test_so_they_have_when_compiled_for_speed(self):
        self.check("-O", "-C", "codegen-units=1")

    def test_so_they_have_by_the_newer_names(self):
        if "symbol-mangling-version" not in subprocess.run(["rustc", "-C", "help"], capture_output=True, text=True).stdout:
            self.skipTest("this rustc has the older names only")
        self.check("-C", "symbol-mangling-version=v0")


NO_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]


class Unwinding(StackCase):
    # Of the two threads of bank.c, without what the C library has between.
    STACKS = [["transfer"] + 4 * ["relay"] + ["compare", "sorts"], ["transfer"] + 6 * ["relay"] + ["relays"]]
    LIBRARY = re.compile(r"^(_.*|main|start|start_thread|clone3?|pthread_.*|qsort.*|msort.*|wrapper_cmp|futex.*|lll_.*|libc_.*|smoothsort|sift|trinkle)$")

    def stacks(self, program, count=3):
        pid = self.start(program)
        # Which thread is the first to wait is chance; that of main is its own.
        return pid, self.threads(pid, count)

    def check_bank(self, compiler, *options, package=None, named=True):
        """Its three stacks, by whichever way they are followed."""
        pid, threads = self.stacks(self.build(compiler, "bank.c", *options, package=package))
        found = []
        for tid, thread in threads.items():
            names = [name for name in self.own(thread) if not self.LIBRARY.match(name)]
            if tid == pid:
                self.assertIn("main", self.own(thread))
            else:
                found.append(names)
        self.assertEqual(sorted(self.STACKS), sorted(found), threads)
        return threads

    def test_without_tables_and_frame_pointers(self):
        for options in (["-O2", "-fomit-frame-pointer"], ["-O0"], ["-O1", "-fno-omit-frame-pointer"], ["-Os"]):
            with self.subTest(options):
                self.check_bank("gcc", "-pthread", *options, *NO_TABLES)

    def test_of_musl_without_being_stopped(self):
        for options in (["-O2"], ["-O2", "-static"], ["-O0", "-static"]):
            with self.subTest(options):
                self.check_bank("musl-gcc", *options, package="musl-tools")

    def test_of_a_static_program(self):
        threads = self.check_bank("gcc", "-g", "-O2", "-static", "-pthread")
        for thread in threads.values():
            self.assertRegex(self.where(thread), r"^(transfer  bank\.c:\d+|main  bank\.c:\d+)$")

    def test_optimized_as_a_whole(self):
        threads = self.check_bank("gcc", "-g", "-O2", "-flto", "-fno-inline", "-fno-ipa-cp", "-pthread")
        places = {self.where(thread) for thread in threads.values()}
        self.assertEqual({f"transfer  {line_of('bank.c', 'waits')}", f"main  {line_of('bank.c', 'joins')}"}, places)

    def test_of_a_static_program_without_names_are_as_deep(self):
        for compiler, package in (("gcc", "gcc"), ("musl-gcc", "musl-tools")):
            with self.subTest(compiler):
                whole = self.stacks(self.build(compiler, "bank.c", "-O2", "-static", "-pthread", package=package))[1]
                bare = self.stacks(self.build(compiler, "bank.c", "-O2", "-static", "-pthread", "-s", package=package))[1]
                depths = [sorted(len(thread["stack"]) for thread in threads.values()) for threads in (whole, bare)]
                # Where a thread began is told by a name alone.
                for with_names, without in zip(*depths):
                    self.assertIn(with_names - without, (0, 1), (whole, bare))

    def test_through_the_frame_of_a_signal(self):
        for compiler, options in (("gcc", ["-pthread"]), ("gcc", ["-pthread", *NO_TABLES]), ("musl-gcc", ["-static"])):
            with self.subTest(compiler, options=options):
                threads = self.stacks(self.build(compiler, "alarm.c", "-O1", *options, package="musl-tools"), 1)[1]
                names = [frame.get("function", "") for frame in next(iter(threads.values()))["stack"]]
                at = names.index("take")
                self.assertEqual(["take", "on_alarm"], names[at:at + 2])
                self.assertEqual(["compute", "main"], names[at + 3:at + 5], names)


class Places(StackCase):
    def test_a_librarys_function_has_the_name_by_which_it_was_called_and_is_no_place(self):
        library = next((path for path in pathlib.Path("/usr/lib").glob("*/libglib-2.0.so.0")), None)
        if library is None:
            self.skipTest("GLib is not installed (package libglib2.0-0)")
        threads = self.threads(self.start(self.build("gcc", "glib_bank.c", library, "-g", "-O2")), 1)
        thread = next(iter(threads.values()))
        self.assertEqual(f"take  {line_of('glib_bank.c', 'waits')}", self.where(thread))
        inside = [frame for frame in thread["stack"] if frame["module"].startswith("libglib")]
        self.assertEqual(["g_mutex_lock"], [frame.get("function") for frame in inside])


if __name__ == "__main__":
    support.main()
