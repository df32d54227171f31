"""Where the code of a perf.data is: the same options, with the same meaning, of why, export and report."""
import json
import shutil

from support import DATA, Case, main

ETM = DATA / "perf/etm.data"
COMMANDS = {"why": ["--json", "--branches", "1"], "export": ["--to", "jsonl"], "report": ["--data"]}
OPTIONS = ("--binaries", "--vmlinux", "--kallsyms")


class CodeOptions(Case):
    def snapshot(self):
        folder = self.folder / "fw.snapshot-0001"
        folder.mkdir()
        (folder / "manifest.json").write_text(json.dumps({"format": "hangscope-snapshot", "version": 2}))
        return folder

    def test_are_refused_of_what_is_no_perf_data(self):
        log = self.folder / "boot.log"
        log.write_text("core   0: 0x0000000080000000 (0x00000297) auipc   t0, 0x0\n")
        snapshot = self.snapshot()
        for command, words in COMMANDS.items():
            for option in OPTIONS:
                for target in (log, snapshot):
                    done = self.hangscope(command, *words, option, self.folder, target)
                    self.assertEqual(done.status, 2, done.err)
                    self.assertEqual(done.err.decode(), f"hangscope: error: {option} is about a perf.data, and '{target}' neither "
                                                        "is one nor has one\n")

    def test_look_into_the_folder_of_binaries(self):
        shutil.copy("/bin/true", self.folder / "etm_test_loop")
        snapshot = self.snapshot()
        shutil.copy(ETM, snapshot / "cpu.perf.data")
        sentence = f"'{self.folder}/etm_test_loop' is not the file that was recorded: its build id is another"
        for command, words in COMMANDS.items():
            for target in (ETM, snapshot):
                done = self.hangscope(command, *words, "--binaries", self.folder, target)
                said = (done.out + done.err).decode()
                self.assertEqual(done.status, 0, said)
                self.assertIn(sentence, said, command)


if __name__ == "__main__":
    main()
