"""Where a process keeps its scope, and that it is none the worse where it cannot. THREADS_TEST is the
program that records: tests/target/threads_test.cc."""
from toolchains import *

PROGRAM = os.environ.get("THREADS_TEST", str(HERE.parent.parent / "build/dev/tests/target/threads_test"))


FEATURES = ("waypoints", "waits", "asserts", "pauses", "debug", "delays", "bus", "stacks", "guards")


class ScopeFile(Case):
    def emit(self, *before, count=1000, **environment):
        """Where the program says its scope is; it must have ended well, and silently."""
        variables = {k: v for k, v in os.environ.items() if k not in ("HANGSCOPE_SCOPE", "XDG_RUNTIME_DIR")}
        variables["XDG_RUNTIME_DIR"] = str(self.folder)
        done = subprocess.run([*before, PROGRAM, "--emit", str(count)], env={**variables, **environment}, capture_output=True,
                              text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def test_named_by_the_user(self):
        path = self.folder / "mine.scope"
        self.assertEqual(self.emit(HANGSCOPE_SCOPE=str(path)), str(path))
        self.assertEqual(path.read_bytes()[:8], b"hangscop")
        # A second process does not write into the first one's.
        before = path.read_bytes()
        self.assertTrue(self.emit(HANGSCOPE_SCOPE=str(path)).startswith(f"{path}."))
        self.assertEqual(path.read_bytes(), before)

    def test_runtime_folder(self):
        path = pathlib.Path(self.emit())
        self.assertEqual(path.parent, self.folder / "hangscope")
        self.assertEqual(path.parent.stat().st_mode & 0o777, 0o700)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)

    def switched_on(self, features):
        """Names of what is switched on, and how many words mean nothing, with so much in the environment."""
        path = self.folder / "features.scope"
        path.unlink(missing_ok=True)
        asked = {} if features is None else {"HANGSCOPE_FEATURES": features}
        self.assertEqual(self.emit(HANGSCOPE_SCOPE=str(path), **asked), str(path))
        scope = path.read_bytes()
        watch_at, unknown = struct.unpack_from("<II", scope, 144)
        switches, = struct.unpack_from("<I", scope, watch_at + 56)
        return {name for bit, name in enumerate(FEATURES) if switches >> bit & 1}, unknown

    def test_features_by_the_environment(self):
        everything = set(FEATURES)
        for asked, on, unknown in (
                (None, everything, 0), ("", everything, 0), (" ,", everything, 0),
                ("all", everything, 0), ("0", set(), 0),
                ("asserts", {"asserts"}, 0), ("asserts,stacks", {"asserts", "stacks"}, 0), ("waits waypoints", {"waits", "waypoints"}, 0),
                ("-asserts,-bus", everything - {"asserts", "bus"}, 0), ("all,-debug", everything - {"debug"}, 0),
                ("0,guards", {"guards"}, 0), ("pauses,0", set(), 0), ("-all", set(), 0), ("-all,delays", {"delays"}, 0),
                ("assert", everything, 1), ("-assert,-bus", everything - {"bus"}, 1), ("asserts,bos,,x", {"asserts"}, 2),
                ("-", everything, 1), ("1", everything, 1), ("00", everything, 1), ("ASSERTS", everything, 1), ("-0", everything, 1),
                ("x" * 5000, everything, 1)):
            with self.subTest(asked=asked[:40] if asked else asked):
                self.assertEqual(self.switched_on(asked), (on, unknown))

    def test_no_folder(self):
        self.assertEqual(self.emit(HANGSCOPE_SCOPE=str(self.folder / "missing" / "a.scope")), "none")

    def test_a_folder_that_is_none(self):
        (self.folder / "hangscope").write_text("a file")
        self.assertEqual(self.emit(), "none")

    def test_a_folder_that_others_may_write_to(self):
        (self.folder / "hangscope").mkdir()
        (self.folder / "hangscope").chmod(0o777)
        self.assertEqual(self.emit(), "none")
        self.assertEqual(list((self.folder / "hangscope").iterdir()), [])

    def test_a_folder_that_is_a_link(self):
        (self.folder / "elsewhere").mkdir(mode=0o700)
        (self.folder / "hangscope").symlink_to(self.folder / "elsewhere")
        self.assertEqual(self.emit(), "none")

    def test_unwritable_folder(self):
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                self.skipTest("root may write anywhere, and there is no setpriv to be another")
            self.folder.chmod(0o755)
            if subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "test", "-x", PROGRAM]).returncode != 0:
                self.skipTest("the program lies where another user cannot start it")
            self.assertEqual(self.emit("setpriv", "--reuid=65534", "--clear-groups", HANGSCOPE_SCOPE=str(self.folder / "a")), "none")
        else:
            self.folder.chmod(0o500)
            self.assertEqual(self.emit(HANGSCOPE_SCOPE=str(self.folder / "a")), "none")
            self.folder.chmod(0o700)

    def test_full_disk(self):
        small = self.folder / "small"
        small.mkdir()
        mount = f"mount -t tmpfs -o size=8k none {small} && exec \"$@\""
        if subprocess.run(["unshare", "-m", "sh", "-c", mount, "sh", "true"], capture_output=True).returncode != 0:
            self.skipTest("no right to mount a small disk")
        script = mount.replace('exec "$@"', f'"$@" && ls {small} | wc -l')
        said = self.emit("unshare", "-m", "sh", "-c", script, "sh", HANGSCOPE_SCOPE=str(small / "a.scope"))
        self.assertEqual(said.split(), ["none", "0"])

    def test_old_files_are_removed(self):
        """Down to the newest four of the dead, and the one that is being written."""
        other = self.folder / "hangscope" / "threads_tesu.99999999.scope"
        paths = [self.emit()]
        other.write_text("of another program, whose name is as long")
        os.utime(other, (1, 1))
        for _ in range(9):
            paths.append(self.emit())
        left = sorted(str(path) for path in (self.folder / "hangscope").iterdir() if path != other)
        self.assertEqual(left, sorted(paths[-5:]))
        self.assertTrue(other.exists())


if __name__ == "__main__":
    main()
