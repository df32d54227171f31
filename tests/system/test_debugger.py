#!/usr/bin/env python3
"""A snapshot that a debugger took of a board: why, export and report read it."""
import json
import struct

from support import *

# Counts down from 3, calls a function that returns at once, and then spins at 0x400014.
CODE = struct.pack("<7I", 0xD2800060, 0xF1000400, 0x54FFFFE1, 0x94000003, 0xD503201F, 0x14000000, 0xD65F03C0)
ENTER = bytes([0x85, 0, 0, 0x40, 0, 0, 0, 0, 0, 0x30])
RETURN = bytes([0x9D, 4, 0, 0x40, 0, 0, 0, 0, 0])
TRACE = b"\0" * 11 + b"\x80\x01\x01\0\x04" + ENTER + b"\xf7\xf7\xf6\xf7\xf7" + RETURN + b"\xf7\xf7"

FILES = {
    "snapshot.ini": "[snapshot]\nversion=1.0\n[device_list]\na=cpu_0.ini\nb=etm_0.ini\n[trace]\nmetadata=trace.ini\n",
    "trace.ini": "[trace_buffers]\nbuffers=b\n[b]\nname=ETR\nfile=trace.bin\nformat=source_data\n"
    "[source_buffers]\nETM_0=ETR\n[core_trace_sources]\ncpu_0=ETM_0\n",
    "cpu_0.ini": "[device]\nname=cpu_0\nclass=core\ntype=Cortex-A53\n[dump]\nfile=code.bin\naddress=0x400000\n",
    "etm_0.ini": "[device]\nname=ETM_0\nclass=trace_source\ntype=ETM4\n[regs]\nTRCCONFIGR=0x40\nTRCTRACEIDR=0x10\n"
    "TRCIDR0=0x28000ea1\nTRCIDR2=0x20001088\n",
    "code.bin": CODE,
    "trace.bin": TRACE,
}


class Board(Case):
    def setUp(self):
        super().setUp()
        self.board = self.folder / "board"
        self.board.mkdir()
        for name, content in FILES.items():
            data = content if isinstance(content, bytes) else content.encode()
            (self.board / name).write_bytes(data)

    def test_why_says_where_its_core_was_last(self):
        done = self.hangscope("why", "--branches", "1", f"{self.board}/")
        self.assertEqual(done.status, 0, done.err)
        self.assertIn(b"last branched at 0x400014", done.out)
        self.assertIn(b"the last 1 branches of cpu_0", done.out)
        lines = [json.loads(line) for line in self.hangscope("why", "--json", self.board).out.splitlines()]
        source = next(line for line in lines if line["type"] == "trace_source")
        self.assertEqual((source["instructions"], source["branches"], source["atoms"]), (12, 6, 7))

    def test_why_refuses_one_without_a_trace_in_a_sentence(self):
        (self.board / "snapshot.ini").write_text("[snapshot]\nversion=1.0\n")
        done = self.hangscope("why", self.board)
        self.assertEqual(done.status, 3)
        self.assertIn(b"names no [trace] metadata", done.err)
        self.assertEqual(done.err.count(b"\n"), 1, done.err)

    def test_export_writes_its_branches_in_every_format(self):
        for form in ("text", "jsonl", "chrome", "perfetto", "ctf"):
            done = self.hangscope("export", "--to", form, "-o", self.folder / f"out.{form}", self.board)
            self.assertEqual(done.status, 0, done.err)
            self.assertIn(b"7 events, 0 losses", done.err, form)  # where it entered, and 6 branches

    def test_report_draws_a_row_for_its_core(self):
        done = self.hangscope("report", "--data", self.board)
        self.assertEqual(done.status, 0, done.err)
        tracks = json.loads(done.out)["tracks"]
        self.assertEqual([track["name"] for track in tracks], ["cpu_0 ETM_0"])
        self.assertEqual(tracks[0]["events"]["n"], 7)


if __name__ == "__main__":
    main()
