"""What scripts/make-packages makes, in roots where nothing else of hangscope's is: minbase of Debian, and one without glibc.

It builds the packages, makes the roots and installs Debian's packages into them: superuser, network, minutes.
"""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess

import debian_root
from debian_root import Root
from support import BUILD, CMAKE, ROOT, main
from terminal import TerminalCase

PACKAGES = ROOT / "build/packages"
WORK = pathlib.Path(BUILD) / "packages"  # bare roots, made once
NAMES = ("hangscope", "libhangscope-dev", "hangscope-doc")

# A test of CTest's that waits for ever, and one that passes.
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(shop CXX)
enable_testing()
find_package(Threads REQUIRED)
find_package(hangscope REQUIRED COMPONENTS host)
add_executable(till till.cc)
target_link_libraries(till Threads::Threads hangscope::target)
add_executable(host host.cc)
target_link_libraries(host hangscope::host)
add_test(NAME counts COMMAND till)
add_test(NAME pays COMMAND till both)
"""
TILL = """#include <hangscope/version.h>
#include <chrono>
#include <mutex>
#include <thread>
std::mutex money, goods;
void Swap(std::mutex& first, std::mutex& second) {
  std::lock_guard one(first);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::lock_guard two(second);
}
int main(int count, char**) {
  if (count == 1) return 0;
  std::thread customer([] { Swap(money, goods); });
  Swap(goods, money);
  customer.join();
}
"""
HOST = """#include <hangscope/host/hangscope.hpp>
#include <cstdio>
int main() {
  auto target = hangscope::host::Target::Open("nothing.scope");
  std::puts(target.ok() ? "opened" : target.status().message().c_str());
}
"""
# The same in C, for a machine without the C++ library.
DEADLOCK = """#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t money, goods;
static void swap(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  usleep(300000);
  pthread_mutex_lock(second);
}
static void* customer(void* nothing) {
  swap(&money, &goods);
  return nothing;
}
int main(void) {
  pthread_t thread;
  pthread_mutexattr_t checked;
  pthread_mutexattr_init(&checked);
  pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&money, &checked);
  pthread_mutex_init(&goods, &checked);
  pthread_create(&thread, 0, customer, 0);
  swap(&goods, &money);
  return 0;
}
"""
WHY = """/hang & pid=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
  {hangscope} why "$pid" >/tmp/why 2>&1; status=$?
  [ $status = 1 ] && break
  sleep 1
done
cat /tmp/why
kill $pid
exit $status"""


def files(root):
    """{path: kind} of what a package could leave behind; what Debian's own tools write down is left out."""
    own = ("/var/cache/", "/var/log/", "/var/lib/apt/", "/var/lib/dpkg/", "/etc/ld.so.cache", "/usr/share/info/dir", "/work", "/tmp/", "/run/",
           "/proc/", "/sys/", "/dev/")
    found = {}
    for folder, folders, names in os.walk(root):
        inside = "/" + os.path.relpath(folder, root).removeprefix(".")
        folders[:] = [name for name in folders if not f"{inside}/{name}/".replace("//", "/").startswith(own)]
        for name in folders + names:
            path = f"{inside}/{name}".replace("//", "/")
            if not path.startswith(own):
                found[path] = "folder" if name in folders else "file"
    return found


class Packages(TerminalCase):
    NEEDS = ()  # commands, beside debootstrap's, with their packages

    def setUp(self):
        super().setUp()
        try:
            debian_root.must_be_possible(*self.NEEDS)
        except debian_root.Cannot as reason:
            self.skipTest(str(reason))

    def make_packages(self, *kinds):
        """Paths of what was made; one test at a time."""
        WORK.mkdir(exist_ok=True)
        launcher = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}
        with open(WORK / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run([ROOT / "scripts/make-packages", *kinds], capture_output=True, text=True, env={**os.environ, **launcher})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])
        return [ROOT / line for line in done.stdout.splitlines()]

    def bare_root(self):
        """A root of this test's own with Debian's minbase in it."""
        try:
            with open(WORK / "root-lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                base = debian_root.make(WORK / "minbase", WORK / "minbase-has")
        except debian_root.Cannot as reason:
            self.skipTest(str(reason))
        root = self.folder / "root"
        subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
        return root

    def run_in(self, root, script, timeout=300, expect=0, **environment):
        status, said = Root(root).run(["sh", "-c", script], timeout, **environment)
        self.assertEqual(status, expect, f"{script}\n{said[-4000:]}")
        return said

    def install(self, root, *packages):
        self.run_in(root, "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends " + " ".join(packages),
                    900)


class Debian(Packages):
    NEEDS = (("lintian", "lintian"),)

    def test_lintian_has_nothing_to_say(self):
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--show-overrides",
                               *self.make_packages("deb")], capture_output=True, text=True)
        said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(("O:", "N:"))]
        self.assertEqual((done.returncode, said), (0, []), done.stdout)

    def test_a_newcomer_installs_uses_and_removes_it(self):
        made = self.make_packages("deb")
        self.assertEqual(sorted(path.name.split("_")[0] for path in made), sorted(NAMES))
        root = self.bare_root()
        self.install(root, "man-db", "bash-completion", "zsh", "fish", "cmake", "g++", "make")
        before = files(root)
        (root / "debs").mkdir()
        for path in made:
            shutil.copy(path, root / "debs")
        self.install(root, *(f"/debs/{path.name}" for path in made))
        shutil.rmtree(root / "debs")

        self.assertRegex(self.run_in(root, "hangscope --version"), r"^hangscope \d")
        self.manual_pages_render(root)
        self.shells_complete(root)
        self.a_hanging_ctest_is_told(root)
        self.documentation_is_there(root)

        self.run_in(root, f"apt-get purge -y -q {' '.join(NAMES)} && apt-get autoremove --purge -y -q")
        after = files(root)
        self.assertEqual({path: after[path] for path in after.keys() - before.keys()}, {})
        self.assertEqual(before.keys() - after.keys(), set())

    def manual_pages_render(self, root):
        page = self.run_in(root, "man -P cat hangscope-why", MANWIDTH="100")
        self.assertIn("HANGSCOPE-WHY(1)", page)
        self.assertIn("--debuginfod", page)
        commands = self.commands(root)
        self.assertIn("why", commands)
        for command in commands:
            self.run_in(root, f"man -w hangscope-{command}")
        self.assertIn("hangscope (1)", self.run_in(root, "mandb -q; man -k hangscope"))

    def commands(self, root):
        said = self.run_in(root, "hangscope --help")
        return re.findall(r"(?m)^  ([a-z]+) {2,}[a-z]", said)

    def shells_complete(self, root):
        """Tab, in a bash at a terminal; the others by their own means of asking."""
        self.start("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                   f'mount -t proc proc {root}/proc; exec chroot {root} env -i PATH={debian_root.PATH} HISTFILE= TERM=dumb PS1="shell> " bash --norc -i')
        self.expect(b"shell> ")
        self.press(b". /usr/share/bash-completion/bash_completion\n")
        self.expect(b"shell> ", 2)
        self.press(b"hangscope doc\t--he\t\n")
        self.expect(b"usage: hangscope doctor")
        self.expect(b"shell> ", 3)
        self.press(b"exit\n")
        self.wait_for_end()
        self.assertIn("_hangscope", self.run_in(root, "zsh -fc 'autoload -U compinit; compinit -u -d /tmp/dump; echo $_comps[hangscope]'"))
        self.assertIn("doctor", self.run_in(root, "fish -c 'complete -C \"hangscope doc\"'", HOME="/tmp"))

    def a_hanging_ctest_is_told(self, root):
        project = root / "shop"
        project.mkdir()
        for name, text in (("CMakeLists.txt", PROJECT), ("till.cc", TILL), ("host.cc", HOST)):
            (project / name).write_text(text)
        self.run_in(root, "cd /shop && cmake -B build -DCMAKE_BUILD_TYPE=Debug && cmake --build build")
        said = self.run_in(root, "cd /shop/build && hangscope run --stall 3 --on-hang kill --prefix /shop/trace -- ctest", 120, expect=124)
        self.assertRegex(said, r"HANG after .*deadlock", said)
        self.assertIn("till.cc", said)
        shutil.rmtree(project)

    def documentation_is_there(self, root):
        for path in ("docs/install.md", "README.md", "changelog.gz", "copyright"):
            self.assertTrue((root / "usr/share/doc/hangscope" / path).exists(), path)


class Arm64(Packages):
    NEEDS = (("qemu-aarch64-static", "qemu-user-static"), ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"))

    def test_packages_are_of_arm64_and_the_command_starts(self):
        """Not installed: an emulator would take a quarter of an hour for that."""
        done = subprocess.run([ROOT / "tests/arm64/run", "--only-root", pathlib.Path(BUILD) / "arm64"], capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        os.environ["HANGSCOPE_ARM64_ROOT"] = done.stdout.strip()
        made = {path.name.split("_")[0]: path for path in self.make_packages("arm64")}
        self.assertEqual(sorted(made), ["hangscope", "libhangscope-dev"])
        for path in made.values():
            self.assertEqual(subprocess.run(["dpkg-deb", "-f", path, "Architecture"], capture_output=True, text=True).stdout, "arm64\n")
        if shutil.which("lintian"):
            self.assertEqual(subprocess.run(["lintian", "--allow-root", *made.values()], capture_output=True, text=True).stdout, "")
        depends = subprocess.run(["dpkg-deb", "-f", made["hangscope"], "Depends"], capture_output=True, text=True).stdout
        for package in ("libc6 (>= ", "libdw1 (>= ", "libfmt9 (>= ", "libstdc++6", "libtinfo6 (>= "):
            self.assertIn(package, depends)
        self.assertNotIn("libipt", depends)  # there is none
        subprocess.run(["dpkg-deb", "-x", made["hangscope"], self.folder], check=True)
        said = subprocess.run(["qemu-aarch64-static", "-L", os.environ["HANGSCOPE_ARM64_ROOT"], self.folder / "usr/bin/hangscope", "--version", "-v"],
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("off libipt", said.stdout)
        self.assertIn("off capstone", said.stdout)
        self.assertTrue((self.folder / "usr/share/man/man1/hangscope-why.1.gz").exists())


class Static(Packages):
    NEEDS = (("musl-gcc", "musl-tools"), ("busybox", "busybox-static"))

    def unpacked(self, root):
        archive, = self.make_packages("static")
        subprocess.run(["tar", "-xzf", archive, "-C", root], check=True)
        return "/" + archive.name.removesuffix(".tar.gz")

    def compile(self, compiler, root):
        source = self.folder / "hang.c"
        source.write_text(DEADLOCK)
        subprocess.run([compiler, "-g", "-O0", "-pthread", "-o", root / "hang", source], check=True)

    def deadlock_is_told(self, root, place):
        said = self.run_in(root, WHY.format(hangscope=f"{place}/bin/hangscope"), 120, expect=1)
        self.assertRegex(said, r"HANG: deadlock, 2 of 2 threads wait for each other \(certain\)\n(?s:.*)mutex goods, held by")
        return said

    def test_archive_has_an_executable_without_libraries_and_their_licences(self):
        place = self.folder / self.unpacked(self.folder)[1:]
        self.assertNotIn("NEEDED", subprocess.run(["readelf", "-d", place / "bin/hangscope"], capture_output=True, text=True, check=True).stdout)
        self.assertNotIn("INTERP", subprocess.run(["readelf", "-l", place / "bin/hangscope"], capture_output=True, text=True, check=True).stdout)
        names = {str(path.relative_to(place)) for path in place.rglob("*")}
        self.assertLessEqual({"share/man/man1/hangscope-why.1.gz", "share/bash-completion/completions/hangscope", "share/doc/hangscope/LICENSE",
                              "share/doc/hangscope/licenses/libc6-dev", "libexec/hangscope/hangscope_count.so"}, names)

    def test_tells_a_deadlock_in_minbase(self):
        root = self.bare_root()
        place = self.unpacked(root)
        self.compile("gcc", root)
        before = files(root)
        self.assertIn("hang.c:", self.deadlock_is_told(root, place))
        self.assertEqual(files(root), before)

    def test_tells_a_deadlock_where_there_is_no_glibc(self):
        root = self.folder / "root"
        for name in ("bin", "lib", "proc", "sys", "dev", "tmp", "run"):
            (root / name).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin")
        subprocess.run([root / "bin/busybox", "--install", "-s", root / "bin"], check=True)
        for link in (root / "bin").iterdir():
            if link.is_symlink():
                link.unlink()
                link.symlink_to("busybox")
        loader = pathlib.Path(f"/lib/ld-musl-{os.uname().machine}.so.1")
        shutil.copy(loader, root / "lib" / loader.name)
        self.compile("musl-gcc", root)
        self.assertIn("musl", self.run_in(root, f"/lib/{loader.name} 2>&1; true"))
        self.deadlock_is_told(root, self.unpacked(root))  # musl's libc has nothing by which its stacks could be followed


class Uninstall(Packages):
    def test_leaves_nothing_and_what_others_put_there(self):
        self.make_packages("static")
        prefix = self.folder / "usr"
        (prefix / "bin").mkdir(parents=True)  # was there, and empty
        (prefix / "share/man/man1").mkdir(parents=True)
        (prefix / "share/man/man1/other.1").write_text("")
        before = files(prefix)
        build = PACKAGES / "static"
        subprocess.run([CMAKE, "--build", build], check=True, capture_output=True)
        subprocess.run([CMAKE, "--install", build, "--prefix", prefix], check=True, capture_output=True)
        installed = files(prefix)
        self.assertIn("/share/man/man1/hangscope-why.1.gz", installed)
        self.assertIn("/share/doc/hangscope/docs/install.md", installed)
        done = subprocess.run([CMAKE, "--build", build, "--target", "uninstall"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(files(prefix), before)
        again = subprocess.run([CMAKE, "--build", build, "--target", "uninstall"], capture_output=True, text=True)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("nothing to remove", again.stdout + again.stderr)


if __name__ == "__main__":
    main()
