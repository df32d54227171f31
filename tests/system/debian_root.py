"""Roots of Debian 12 in a folder: made by debootstrap, entered by the superuser, with mounts and processes of their own.

tests/arm64/run and test_packages.py share it.
"""
import os
import shutil
import subprocess

SUITE = "bookworm"
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


class Cannot(Exception):
    """It cannot be done here, with the reason."""


def mirror():
    """Where apt gets Debian's own packages of this release from."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)", "Created-By: Packages"],
                            capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        uri, codename, component, origin = (line.split() + [""] * 4)[:4]
        if (codename, component, origin) == (SUITE, "main", "Debian"):
            return uri
    raise Cannot(f"apt has no source of Debian's {SUITE}")


def must_be_possible(*more):
    """`more`: (command, package) that are needed beside debootstrap's."""
    for tool, package in (("debootstrap", "debootstrap"), ("dpkg-deb", "dpkg"), ("apt-get", "apt"), ("unshare", "util-linux"), *more):
        if shutil.which(tool) is None:
            raise Cannot(f"{tool} is not installed (package {package}; scripts/ensure-packages long)")
    if os.geteuid() != 0:
        raise Cannot("a root is made and entered by the superuser only")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        raise Cannot("mounts are not permitted here")


def make(root, mark, packages=(), arch=None):
    """The folder `root` with minbase and `packages`, made anew unless the file `mark` says that it is that already.

    `arch`: of another machine; then all is unpacked, nothing configured."""
    told = " ".join([arch or "own", *packages])
    if root.exists() and mark.exists() and mark.read_text() == told:
        make_links_relative(root)
        return root
    uri = mirror()
    mark.unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    done = subprocess.run(["debootstrap", "--variant=minbase", *(["--foreign", f"--arch={arch}"] if arch else []),
                           *([f"--include={','.join(packages)}"] if packages else []), SUITE, root, uri], capture_output=True, text=True)
    if done.returncode != 0:
        raise Cannot(f"debootstrap: {(done.stdout + done.stderr).strip()[-300:]}")
    if arch:
        unpack(root)
        make_links_relative(root)
    mark.write_text(told)
    return root


def unpack(root):
    """What debootstrap --foreign fetched."""
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as files:
            # Of merged roots: /lib is a link to usr/lib, and stays one.
            subprocess.run(["tar", "-x", "-C", root, "--keep-directory-symlink"], stdin=files.stdout, check=True)
    for name in ("proc", "dev", "sys", "tmp", "run"):
        if (root / name).is_symlink():  # debootstrap's, where it may not mount
            (root / name).unlink()
        (root / name).mkdir(exist_ok=True)


def make_links_relative(root):
    """Seen from outside, /lib/libtinfo.so.6 is this machine's: a linker that does not find it takes a static library."""
    for link in root.glob("usr/lib/*-linux-gnu/*.so"):
        if link.is_symlink() and os.readlink(link).startswith("/"):
            target = os.path.relpath(root / os.readlink(link)[1:], link.parent)
            link.unlink()
            link.symlink_to(target)


class Root:
    """A root that commands are run in. `bound`: folders of this machine that are at the same place there."""

    def __init__(self, root, *bound):
        self.root, self.bound = root, bound

    def run(self, words, timeout, **environment):
        """Status and output (124: it took longer than `timeout` seconds). Each has a /proc and a /tmp of its own, and ends with
        all that it started."""
        # A bound folder may lie below /tmp: that is mounted first.
        script = """set -e; root=$1; shift; cd /
            for place in tmp run; do mount -t tmpfs tmp "$root/$place"; done
            while [ "$1" != -- ]; do mkdir -p "$root$1"; mount --bind "$1" "$root$1"; shift; done; shift
            mount -t proc proc "$root/proc"; mount -t sysfs sysfs "$root/sys"; mount --rbind /dev "$root/dev"
            exec chroot "$root" "$@"
            """
        kept = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **environment}
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", script, "sh",
                   self.root, *self.bound, "--", *words]
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=timeout,
                                  env={name: str(value) for name, value in kept.items()})
        except subprocess.TimeoutExpired as late:
            return 124, ((late.stdout or b"") + (late.stderr or b"")).decode(errors="replace")
        return done.returncode, done.stdout + done.stderr
