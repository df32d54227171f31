"""What asks for snapshots besides a hang: lines, rates, silence, the end, people. And who is asked."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from support import HANGSCOPE, Case, main, python

WAIT = "import time\n"
ASLEEP = "print('working'); import threading; l=threading.Lock(); l.acquire(); l.acquire()"


class Triggered(Case):
    def manifest(self, folder):
        return json.loads((pathlib.Path(folder) / "manifest.json").read_text())

    def manifests(self):
        return [self.manifest(folder) for folder in self.snapshots()]

    def taken(self):
        return [m for m in self.messages() if m["type"] == "snapshot"]

    def socket_path(self, process):
        return self.runtime / "hangscope" / f"{process.pid}.sock"

    def sleeper(self, *options, command="run", prefix=None, code=ASLEEP):
        """A recorder whose program waits, once it is there."""
        if prefix:
            self.prefix = str(prefix)
        process = self.recorder(command, *options, "--", *python(code))
        self.assertEqual(process.stdout.readline(), b"working\n")
        self.until(lambda: self.socket_path(process).exists(), what="the socket")
        return process


class Lines(Triggered):
    def test_a_line_takes_a_snapshot_that_names_it(self):
        process = self.recorder("run", "--trigger", "pan[ik]c: (.*) 7$", "--",
                                *python("print('a'); print('panic: cb3', 7); input(); print('b')"), stdin=subprocess.PIPE)
        self.until(self.taken, what="the snapshot")
        process.stdin.write(b"\n")
        process.stdin.flush()
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 0)
        snapshot, = outcome.of_type("snapshot")
        self.assertEqual(snapshot["trigger"], "regex: pan[ik]c: (.*) 7$")
        manifest, = self.manifests()
        self.assertEqual(manifest["trigger_kind"], "regex")
        self.assertEqual(manifest["trigger_detail"], "panic: cb3 7")
        self.assertEqual((manifest["trigger_stream"], manifest["trigger_offset"]), ("stdout", 2))
        self.assertLessEqual(manifest["trigger_s"], manifest["elapsed_s"])
        self.assertEqual(self.cat(self.snapshots()[0]), b"a\npanic: cb3 7\n")

    def test_any_stream_and_several_expressions(self):
        outcome = self.run_program(["sh", "-c", "echo one; echo two >&2; sleep 1"], "--trigger", "one", "--trigger=two",
                                   "--max-snapshots", 9)
        self.assertEqual(sorted(m["trigger"] for m in outcome.of_type("snapshot")), ["regex: one", "regex: two"])

    def test_the_last_line_counts_without_its_end(self):
        outcome = self.run_program(["printf", "a\\nassert failed"], "--trigger", "failed$")
        self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["regex: failed$"])

    def test_an_open_line_is_seen_while_the_program_waits(self):
        process = self.recorder("run", "--trigger", "password:", "--", *python(
            "import sys; sys.stdout.write('password: '); sys.stdout.flush(); import time; time.sleep(60)"))
        self.until(self.taken, what="the snapshot")
        process.terminate()
        self.wait(process)

    def test_a_flood_takes_few_snapshots_and_counts_the_rest(self):
        code = WAIT + "end=time.time()+2.5\nn=0\nwhile time.time()<end:\n print('panic\\n'*100); n+=100; time.sleep(0.01)\nprint(n)"
        outcome = self.run_program(python(code), "--trigger", "panic", "--no-passthrough", "--max-snapshots", 9)
        snapshots = outcome.of_type("snapshot")
        self.assertGreater(len(snapshots), 1)
        self.assertLess(len(snapshots), outcome.last["elapsed_s"] + 2)  # a second is quiet
        count = int(self.cat(self.prefix).split()[-1])
        told = sum(m.get("suppressed", 0) for m in snapshots)
        left = [int(n["text"].split(": ")[2].split(" more")[0].replace(" ", "")) for n in outcome.of_type("note") if "quiet period" in n["text"]]
        self.assertEqual(len(snapshots) + told + sum(left), count)

    def test_a_shorter_quiet_period_takes_more(self):
        process = self.recorder("run", "--trigger", "panic", "--trigger-quiet", "100ms", "--max-snapshots", 9, "--",
                                *python("for i in range(4): print('panic'); input()"), stdin=subprocess.PIPE)
        for count in range(1, 5):
            self.until(lambda: len(self.taken()) == count, what=f"snapshot {count}")
            time.sleep(0.2)
            process.stdin.write(b"\n")
            process.stdin.flush()
        self.assertEqual(len(self.wait(process).of_type("snapshot")), 4)

    def test_what_the_ring_overwrote_unseen_is_told(self):
        code = "import sys\nb=(b'x'*1023+b'\\n')*64\nfor i in range(300): sys.stdout.buffer.write(b)"
        outcome = self.run_program(python(code), "--trigger", "panic", "--size", "64K", "--keep", 1, "--no-passthrough")
        notes = [n["text"] for n in outcome.of_type("note") if "without being searched" in n["text"]]
        self.assertTrue(notes)

    def test_tee_too(self):
        process = self.recorder("tee", "--trigger", "panic", stdin=subprocess.PIPE)
        process.stdin.write(b"a\npanic\nb\n")
        process.stdin.flush()
        self.until(self.taken, what="the snapshot")
        process.stdin.close()
        process.stdin = None
        self.wait(process)
        self.assertEqual(self.manifests()[0]["trigger_stream"], "stdin")

    def test_what_is_no_expression_is_told(self):
        outcome = self.run_program(["true"], "--trigger", "a(b")
        self.assertEqual(outcome.status, 125)
        self.assertRegex(outcome.err, rb"--trigger 'a\(b': missing \): a\(b; for example")


class Post(Triggered):
    LATER = WAIT + "print('panic'); time.sleep(0.2); print('after'); time.sleep(2); print('late'); time.sleep(1)"

    def test_of_a_time_holds_what_came_within_it(self):
        outcome = self.run_program(python(self.LATER), "--trigger", "panic", "--post", "1")
        self.assertEqual(len(outcome.of_type("snapshot")), 1)
        self.assertEqual(self.cat(self.snapshots()[0]), b"panic\nafter\n")
        manifest, = self.manifests()
        self.assertEqual(manifest["post_s"], 1.0)
        self.assertGreaterEqual(manifest["elapsed_s"] - manifest["trigger_s"], 0.999)
        self.assertTrue([n for n in outcome.of_type("note") if "snapshot in 1.0 s" in n["text"]])

    def test_of_bytes_holds_them(self):
        code = WAIT + "print('panic')\nfor i in range(400): print('%099d' % i); time.sleep(0.005)"
        self.run_program(python(code), "--trigger", "panic", "--post", "10K", "--no-passthrough")
        history = self.cat(self.snapshots()[0])
        self.assertGreaterEqual(len(history), 10 * 1024)
        self.assertLess(len(history), 40000)
        self.assertEqual(self.manifests()[0]["post_bytes"], 10240)

    def test_several_in_a_row_each_get_theirs(self):
        code = WAIT + "for i in range(3): print('panic', i); time.sleep(1.2)\ntime.sleep(2)"
        outcome = self.run_program(python(code), "--trigger", "panic", "--post", "2s", "--max-snapshots", 9)
        self.assertEqual(len(outcome.of_type("snapshot")), 3)
        times = [m["trigger_s"] for m in self.manifests()]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[2] - times[0], 1)
        self.assertEqual([m["trigger_detail"] for m in self.manifests()], ["panic 0", "panic 1", "panic 2"])

    def test_the_end_takes_all_that_wait(self):
        outcome = self.run_program(["sh", "-c", "echo panic; echo end"], "--trigger", "panic", "--post", "1h")
        self.assertEqual(len(outcome.of_type("snapshot")), 1)
        self.assertEqual(self.cat(self.snapshots()[0]), b"panic\nend\n")

    def test_signals_wait_too(self):
        process = self.sleeper("--post", "1s", "--on-exit", "none")
        process.send_signal(signal.SIGUSR1)
        self.until(self.taken, what="the snapshot")
        process.terminate()
        self.wait(process)
        manifest, = self.manifests()
        self.assertEqual((manifest["trigger"], manifest["trigger_kind"]), ("SIGUSR1", "signal"))
        self.assertGreaterEqual(manifest["elapsed_s"] - manifest["trigger_s"], 0.999)


class Rates(Triggered):
    def test_a_drop_takes_one(self):
        code = WAIT + "end=time.time()+5\nwhile time.time()<end: print('x'*1000); time.sleep(0.002)\nfor i in range(30): print('y'); time.sleep(0.1)"
        outcome = self.run_program(python(code), "--trigger-rate", "10%/500ms", "--no-passthrough", "--stall", 60)
        self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["rate: 10%"])
        self.assertIn("is usual", self.manifests()[0]["trigger_detail"])

    def test_silence_takes_one_though_it_is_no_hang(self):
        code = WAIT + "print('x'); time.sleep(3); print('y'); time.sleep(0.3)"
        outcome = self.run_program(python(code), "--trigger-silence", "1s")
        self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["silence: 1.0 s"])
        self.assertEqual(outcome.hangs, [])
        self.assertEqual(self.cat(self.snapshots()[0]), b"x\n")

    def test_time_spent_stopped_is_no_silence(self):
        process = self.recorder("run", "--trigger-silence", "1s", "--", *python(
            WAIT + "for i in range(60): print(i); time.sleep(0.05)"))
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(self.wait(process).of_type("snapshot"), [])


class Exit(Triggered):
    def test_a_crash_and_a_failure_take_one_with_the_last_words(self):
        for command, detail in (("echo last words; exit 7", "status 7"), ("echo last words; kill -SEGV $$", "signal 11 (Segmentation fault)")):
            outcome = self.run_program(["sh", "-c", command])
            self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["exit"])
            manifest = self.manifests()[-1]
            self.assertEqual((manifest["trigger_kind"], manifest["trigger_detail"]), ("exit", detail))
            self.assertIn(manifest["verdict"]["state"], ("dead", "finished"))
            self.assertEqual(self.cat(self.snapshots()[-1]), b"last words\n")

    def test_the_report_names_it(self):
        done = self.hangscope("run", "--prefix", self.prefix, "--", "sh", "-c", "echo x; exit 3")
        self.assertRegex(done.err, rb"ended with status 3\n(.*\n)*  snapshot: .*snapshot-0001/   \(2 B of stdout, report.html\)")

    def test_success_takes_none(self):
        self.assertEqual(self.run_program(["true"]).of_type("snapshot"), [])
        self.assertEqual(self.snapshots(), [])

    def test_always_takes_one_of_a_success_too(self):
        outcome = self.run_program(["sh", "-c", "echo all is well"], "--on-exit", "always")
        self.assertEqual(outcome.status, 0)
        self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["exit"])
        manifest = self.manifests()[-1]
        self.assertEqual((manifest["trigger_kind"], manifest["trigger_detail"], manifest["verdict"]["state"]), ("exit", "status 0", "finished"))
        self.assertEqual(self.cat(self.snapshots()[-1]), b"all is well\n")

    def test_always_says_where_it_is(self):
        done = self.hangscope("run", "--on-exit", "always", "--prefix", self.prefix, "--", "echo", "x")
        self.assertRegex(done.err, rb"  snapshot: .*snapshot-0001/   \(2 B of stdout, report.html\)")

    def test_none_takes_none(self):
        self.assertEqual(self.run_program(["false"], "--on-exit", "none").of_type("snapshot"), [])

    def ended_by(self, *signals, code="import time; print('ready', flush=True); time.sleep(60)"):
        """The snapshots of a service that hangscope sends these on to."""
        process = self.recorder("run", "--on-exit", "unless-stopped", "--", *python("import signal\n" + code))
        self.assertEqual(process.stdout.readline(), b"ready\n")
        for number in signals:
            process.send_signal(number)
            time.sleep(0.2)
        return [m["trigger"] for m in self.wait(process).of_type("snapshot")]

    def test_unless_stopped_takes_none_of_what_was_told_to_end(self):
        ends_with_3 = "signal.signal(signal.SIGTERM, lambda *_: exit(3)); print('ready', flush=True); signal.pause()"
        self.assertEqual(self.ended_by(signal.SIGTERM), [])
        self.assertEqual(self.ended_by(signal.SIGTERM, code=ends_with_3), [])
        self.assertEqual(self.ended_by(signal.SIGINT), [])

    def test_unless_stopped_takes_one_of_what_ended_by_itself(self):
        self.assertEqual(self.ended_by(code="print('ready', flush=True); exit(3)"), ["exit"])
        # Read your settings, and a defect in that.
        reloads = "signal.signal(signal.SIGHUP, lambda *_: exit(3)); print('ready', flush=True); signal.pause()"
        self.assertEqual(self.ended_by(signal.SIGHUP, code=reloads), ["exit"])

    def test_a_hang_that_was_killed_has_its_snapshot_already(self):
        outcome = self.run_program(python(ASLEEP), "--stall", 1, "--on-hang", "kill")
        self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["hang"])

    def test_descendants_that_go_on_do_not_put_it_off(self):
        process = self.recorder("run", "--", "sh", "-c", "echo x; (sleep 60; echo late) & exit 3")
        self.until(self.taken, what="the snapshot")
        self.assertIsNone(process.poll())
        process.terminate()
        self.wait(process)

    def test_wrong_word_is_told(self):
        outcome = self.run_program(["true"], "--on-exit", "explode")
        self.assertEqual(outcome.status, 125)
        self.assertIn(b"for example --on-exit none", outcome.err)


class Snap(Triggered):
    def assert_snap(self, target, *options, trigger="snap", **popen):
        done = self.hangscope("snap", *options, target, **popen)
        self.assertEqual((done.status, done.err), (0, b""))
        folder = pathlib.Path(done.out.decode().rstrip("\n"))
        self.assertTrue(folder.is_absolute())
        manifest = self.manifest(folder)
        self.assertEqual(manifest["trigger"], trigger)
        return manifest

    def test_by_every_name_a_recorder_has(self):
        process = self.sleeper("--max-snapshots", 99)
        status = json.loads(self.hangscope("ls", "--json").out)
        names = [process.pid, status["child_pid"], "ring", self.prefix, self.folder, str(self.folder) + "/",
                 self.prefix + ".stdout", self.prefix + ".stdout.index"]
        for name in names:
            self.assert_snap(name)
        self.assert_snap(".", cwd=self.folder)
        self.assert_snap("ring", cwd="/")
        triggers = [manifest["trigger"] for manifest in self.manifests()]
        self.assertEqual(triggers, ["snap"] * (len(names) + 2))
        self.assertIsNone(process.poll())

    def test_a_relative_prefix_is_found_from_anywhere(self):
        process = subprocess.Popen([HANGSCOPE, "run", "--prefix", "sub/fw", "--", "sleep", "60"], cwd=self.folder,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        self.until(lambda: self.socket_path(process).exists(), what="the socket")
        self.assert_snap(self.folder / "sub/fw", cwd="/")

    def test_an_ambiguous_name_lists_the_candidates(self):
        first = self.sleeper(prefix=self.folder / "a/fw")
        second = self.sleeper(prefix=self.folder / "b/fw")
        done = self.hangscope("snap", "fw")
        self.assertEqual((done.status, done.out), (2, b""))
        self.assertIn(b"'fw' may be any of 2 recorders", done.err)
        for process in (first, second):
            self.assertIn(str(process.pid).encode(), done.err)
        self.assert_snap(self.folder / "a")

    def test_none_found_is_told(self):
        done = self.hangscope("snap", "fw")
        self.assertEqual((done.status, done.out), (3, b""))
        self.assertIn(b"none is running", done.err)
        self.sleeper()
        done = self.hangscope("snap", "fw")
        self.assertEqual(done.status, 3)
        self.assertIn(b"ring", done.err)
        self.assertEqual(self.hangscope("snap").status, 2)

    def test_since_last_has_only_what_the_one_before_has_not(self):
        process = self.recorder("run", "--", *python("print('one'); input(); print('two'); input()"), stdin=subprocess.PIPE)
        process.stdout.readline()
        self.until(lambda: self.hangscope("ls").out)
        first = self.assert_snap("ring")
        self.assertNotIn("since_last", first)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        second = self.assert_snap("ring", "--since-last")
        self.assertIs(second["since_last"], True)
        self.assertEqual(second["streams"][0]["begin_offset"], first["streams"][0]["end_offset"])
        self.assertEqual(self.cat(self.snapshots()[-1]), b"two\n")
        third = self.assert_snap("ring")
        self.assertEqual(self.cat(self.snapshots()[-1]), b"one\ntwo\n")
        self.assertEqual(third["streams"][0]["begin_offset"], 0)

    def test_during_a_hang(self):
        self.sleeper("--stall", 1)
        self.until(self.taken, what="the hang")
        manifest = self.assert_snap("ring")
        self.assertIs(manifest["verdict"]["hang"], True)

    def test_it_waits_for_the_post_unless_told_otherwise(self):
        self.sleeper("--post", "1500ms")
        began = time.monotonic()
        manifest = self.assert_snap("ring")
        self.assertGreaterEqual(time.monotonic() - began, 1.4)
        self.assertEqual(manifest["post_s"], 1.5)
        self.assertNotIn("post_s", self.assert_snap("ring", "--now"))

    def test_what_waits_at_the_end_is_answered(self):
        process = self.sleeper("--post", "1h")
        snap = subprocess.Popen([HANGSCOPE, "snap", "ring"], stdout=subprocess.PIPE)
        self.addCleanup(self.end, snap)
        self.until(lambda: [m for m in self.messages() if m["type"] == "note" and m["text"].startswith("snap;")])
        process.terminate()
        self.assertIn(b"ring.snapshot-", snap.communicate(timeout=20)[0])

    def test_tee_too(self):
        process = self.recorder("tee", stdin=subprocess.PIPE)
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        self.until(lambda: self.cat(self.prefix) == b"hello\n")
        folder = self.hangscope("snap", "ring").out.decode().strip()
        self.assertEqual(self.cat(folder), b"hello\n")

    def test_a_failure_is_told(self):
        self.sleeper(prefix=self.folder / "gone" / "fw")
        shutil.rmtree(self.folder / "gone")
        (self.folder / "gone").write_text("no folder any more")
        done = self.hangscope("snap", "fw")
        self.assertEqual((done.status, done.out), (3, b""))
        self.assertIn(b"took no snapshot: cannot", done.err)

    def test_early_signals_are_kept_by_tee_too(self):
        for _ in range(3):
            process = self.recorder("tee", "--max-snapshots", 99, stdin=subprocess.PIPE)
            blocked = 0
            while not blocked & 1 << (signal.SIGUSR1 - 1):
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                blocked = int(status.split("SigBlk:")[1].split()[0], 16)
            process.send_signal(signal.SIGUSR1)
            self.until(self.taken, what="the snapshot")
            outcome = self.wait(process)
            self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["SIGUSR1"])


class Ls(Triggered):
    def test_nothing_runs(self):
        for words in ((), ("--json",)):
            done = self.hangscope("ls", *words)
            self.assertEqual((done.status, done.out), (0, b""))
            self.assertEqual(done.err, b"hangscope: no recorder is running\n")

    def test_table_and_json(self):
        second = self.sleeper("--stall", 1, prefix=self.folder / "zwei")
        self.until(self.taken, what="the hang")
        first = self.sleeper(prefix=self.folder / "eins")
        lines = self.hangscope("ls").out.decode().splitlines()
        self.assertEqual(lines[0].split(), ["PID", "CHILD", "NAME", "AGE", "BYTES", "RATE", "SNAPSHOTS", "STATE"])
        self.assertEqual([line.split()[:1] + line.split()[2:3] for line in lines[1:]],
                         [[str(first.pid), "eins"], [str(second.pid), "zwei"]])
        self.assertIn("HANG: lost wakeup, its only thread waits for lock l,", lines[2])
        one, two = [json.loads(line) for line in self.hangscope("ls", "--json").out.splitlines()]
        self.assertEqual((one["type"], one["version"], one["pid"]), ("recorder", 1, first.pid))
        self.assertEqual((one["name"], one["prefix"]), ("eins", str((self.folder / "eins").resolve())))
        self.assertEqual(one["total_bytes"], 8)
        self.assertEqual(one["snapshots"], 0)
        self.assertIsNone(one["last_snapshot"])
        # A busy machine may know a worse reason first.
        self.assertEqual((two["state"], two["hang"], two["snapshots"] in (1, 2)), ("starved", True, True))
        self.assertEqual(two["last_snapshot"], str((self.folder / f"zwei.snapshot-000{two['snapshots']}").resolve()))

    def test_table_fits_the_terminal(self):
        self.sleeper("--stall", 1)
        self.until(self.taken, what="the hang")
        master, slave = self.open_terminal()
        import fcntl
        import struct
        import termios
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        subprocess.run([HANGSCOPE, "ls"], stdout=slave, check=True)
        text = os.read(master, 65536).decode()
        os.close(master)
        os.close(slave)
        self.assertEqual(max(len(line) for line in text.splitlines()), 60)
        self.assertIn("…", text)

    def test_what_a_killed_recorder_left_is_removed(self):
        process = self.sleeper()
        path = self.socket_path(process)
        process.kill()
        process.wait()
        self.assertTrue(path.exists())
        self.assertEqual(self.hangscope("ls").out, b"")
        self.assertFalse(path.exists())

    def test_a_stopped_recorder_does_not_hold_it_up(self):
        process = self.sleeper()
        process.send_signal(signal.SIGSTOP)
        done = self.hangscope("ls", timeout=20)
        self.assertIn(b"does not answer", done.out)
        process.send_signal(signal.SIGCONT)


class Socket(Triggered):
    def test_is_private_and_goes_with_the_recorder(self):
        process = self.sleeper()
        self.assertEqual(self.socket_path(process).parent.stat().st_mode & 0o777, 0o700)
        process.terminate()
        self.wait(process)
        self.assertEqual(list((self.runtime / "hangscope").iterdir()), [])

    def test_where_it_cannot_be_made_recording_goes_on(self):
        (self.runtime / "hangscope").mkdir(mode=0o755)
        outcome = self.run_program(["echo", "hello"])
        self.assertEqual((outcome.status, outcome.out), (0, b"hello\n"))
        self.assertEqual(self.cat(self.prefix), b"hello\n")
        note, = outcome.of_type("note")
        self.assertRegex(note["text"], "ls and snap do not find this recorder: .*open to other users")
        self.assertRegex(self.hangscope("ls").err, b"warning: .*open to other users")

    def test_without_a_runtime_folder_there_is_another(self):
        os.environ["XDG_RUNTIME_DIR"] = str(self.folder / "not-there")
        process = self.recorder("run", "--", *python(ASLEEP))
        process.stdout.readline()
        path = pathlib.Path(f"/tmp/hangscope-{os.geteuid()}/{process.pid}.sock")
        self.until(path.exists, what="the socket")
        self.assertIn(str(process.pid).encode(), self.hangscope("ls").out)
        process.terminate()
        self.wait(process)
        self.assertFalse(path.exists())

    def connect(self, process):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(str(self.socket_path(process)))
        client.settimeout(20)
        self.addCleanup(client.close)
        return client

    def test_slow_and_wild_clients_hold_nobody_up(self):
        code = WAIT + "print('working')\nfor i in range(60): print(i); time.sleep(0.05)"
        process = self.sleeper(code=code)
        slow = [self.connect(process) for _ in range(50)]
        for client in slow[:10]:
            client.send(b'{"version":')
        wild = self.connect(process)
        try:
            wild.sendall(os.urandom(1 << 20).replace(b"\n", b"x"))
        except OSError:
            pass
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 0)
        self.assertEqual(self.cat(self.prefix).count(b"\n"), 61)
        self.assertLess(outcome.last["elapsed_s"], 30)  # 3 by itself; the clients would keep it for ever
        for client in slow:
            try:
                client.recv(1000)
            except ConnectionResetError:
                pass

    def test_speaks_the_documented_protocol(self):
        process = self.sleeper()
        for request, reply in ((b'{"version":1,"command":"status"}\n', {"ok": True, "pid": process.pid, "name": "ring"}),
                               (b'{"version":1,"command":"stop"}\n', {"ok": False}),
                               (b'{"version":9,"command":"snap"}\n', {"ok": False}),
                               (b"hello\n", {"ok": False})):
            client = self.connect(process)
            client.sendall(request)
            answer = json.loads(client.makefile().readline())
            self.assertEqual(answer["version"], 1)
            self.assertEqual({key: answer[key] for key in reply}, reply)
            self.assertEqual("error" in answer, not answer["ok"])


if __name__ == "__main__":
    main()
