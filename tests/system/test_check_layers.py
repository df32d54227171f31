"""What scripts/check-layers finds in small trees with one offence each; whether this tree has one is the test `layers`."""
import subprocess
import sys

from support import ROOT, Case, main


class CheckLayers(Case):
    """A sound house of three floors, in which each test breaks one rule."""

    def setUp(self):
        super().setUp()
        self.root = self.folder
        self.write_header("layers.txt", "abi\ntarget\n")
        self.write_header("abi/record.h", "#include <stdint.h>\n")
        self.write_header("target/record.h", '#include "hangscope/abi/record.h"\n')
        self.write("layers.txt", "# a comment\nground\nleft right  # behind it, too\nroof\n")
        self.write("ground/stone.h", "#include <string>\n")
        self.write("left/door.h", '#include "ground/stone.h"\n#include "hangscope/abi/record.h"\n')
        self.write("right/window.cc", '#include "ground/stone.h"\n')
        self.write("roof/tile.cc", '#include "left/door.h"\n#include "roof/slate.h"\n')
        self.write("roof/slate.h", "")
        self.write("CMakeLists.txt", "add_library(house\n  right/window.cc\n  roof/tile.cc\n)\n")

    def write(self, name, text, house="src"):
        path = self.root / house / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_header(self, name, text):
        self.write(name, text, "include/hangscope")

    def offences(self):
        checked = subprocess.run([sys.executable, ROOT / "scripts/check-layers", self.root], stdout=subprocess.PIPE, text=True)
        self.assertEqual(checked.returncode, 1, checked.stdout)
        return checked.stdout.splitlines()

    def test_sound_house_passes(self):
        checked = subprocess.run([sys.executable, ROOT / "scripts/check-layers", self.root])
        self.assertEqual(checked.returncode, 0)

    def test_include_of_a_floor_above(self):
        self.write("ground/stone.h", '#include "roof/slate.h"\n')
        self.assertEqual(self.offences(), ['src/ground/stone.h: includes "roof/slate.h", but roof is not below ground'])

    def test_include_of_a_folder_on_the_same_line(self):
        self.write("right/window.cc", '#  include "left/door.h"\n')
        self.assertEqual(self.offences(), ['src/right/window.cc: includes "left/door.h", but left is not below right'])

    def test_include_without_a_folder(self):
        self.write("roof/tile.cc", '#include "slate.h"\n')
        self.assertEqual(self.offences(), ['src/roof/tile.cc: includes "slate.h", which is in no folder of src/layers.txt'])

    def test_include_of_the_code_for_targets(self):
        self.write("roof/tile.cc", '#include "hangscope/target/record.h"\n')
        self.assertEqual(len(self.offences()), 1)

    def test_source_that_nobody_builds(self):
        self.write("roof/chimney.cc", "")
        self.write("unit/roof/chimney_test.cc", "", "tests")
        self.assertEqual(self.offences(), ["src/roof/chimney.cc: not in src/CMakeLists.txt, so nobody builds it",
                                           "tests/unit/roof/chimney_test.cc: not in tests/CMakeLists.txt, so nobody builds it"])

    def test_folder_that_is_not_listed(self):
        self.write("cellar/wine.h", "")
        self.assertEqual(self.offences(), ["src/cellar: not in src/layers.txt"])

    def test_folder_that_is_gone(self):
        self.write("layers.txt", "ground\nleft right\nattic\nroof\n")
        self.assertEqual(self.offences(), ["src/layers.txt: attic has no source file"])

    def test_header_that_includes_one_above(self):
        self.write_header("abi/record.h", '#include "hangscope/target/record.h"\n')
        self.assertEqual(self.offences(),
                         ['include/hangscope/abi/record.h: includes "hangscope/target/record.h", but target is not below abi'])

    def test_header_that_includes_the_host(self):
        self.write_header("target/record.h", '#include "ground/stone.h"\n')
        self.assertEqual(len(self.offences()), 1)

    def test_folder_with_too_many_files(self):
        for number in range(40):
            self.write(f"roof/page/{number}.js", "")
            self.write(f"roof/tile{number}.h", "")
        self.assertEqual(self.offences(), ["src/roof: 42 files, 40 at most"])

    def test_name_that_stands_twice(self):
        self.write("roof/stone.h", "")
        self.assertEqual(self.offences(), ["stone: in src/ground and in src/roof"])

    def test_constant_that_hides_one_of_a_header(self):
        self.write("ground/stone.h", "constexpr size_t kMostStones = 4;\n")
        self.write("roof/tile.cc", "constexpr uint32_t kMostStones = 8;\n")
        self.assertEqual(self.offences(), ["src/roof/tile.cc: kMostStones is also in src/ground/stone.h"])


if __name__ == "__main__":
    main()
