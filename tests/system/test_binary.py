"""What the binary is built with."""
import shutil
import subprocess

from support import HANGSCOPE, SANITIZED, Case, main


class Binary(Case):
    def readelf(self, *options):
        return subprocess.run(["readelf", "-W", *options, HANGSCOPE], capture_output=True, text=True, check=True).stdout

    def test_is_hardened(self):
        if shutil.which("readelf") is None:
            self.skipTest("readelf is not installed (package binutils)")
        if SANITIZED:
            self.skipTest("a build with sanitizers is not for users")
        self.assertIn("DYN (Position-Independent Executable file)", self.readelf("-h"))
        self.assertIn("GNU_RELRO", self.readelf("-l"))
        self.assertRegex(self.readelf("-d"), r"FLAGS.*\bNOW\b")
        self.assertRegex(self.readelf("-l"), r"GNU_STACK .* RW ")
        symbols = self.readelf("--dyn-syms")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertRegex(symbols, r"__\w+_chk@")  # checked copies


if __name__ == "__main__":
    main()
