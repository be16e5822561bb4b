"""Tries a wheel where nothing of Vulkan can be found: a root folder with libc, Python and packages only.

    python3 packages/python/bare.py target/packages/spelter-0.1.0-….whl

With SPELTER_PYTHON, the programs of clients run there as well, as in check.py. Needs `ldd`, `chroot`, and `unshare`, for
which the caller is root or may have a namespace of users.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from check import HERE, PROGRAMS, clients, run

#: Parts of Python that no program here uses, and packages, which are copied apart.
LEFT_OUT = shutil.ignore_patterns("site-packages", "dist-packages", "test", "idlelib", "config-*", "__pycache__", "*.a")

#: Prints the program, the standard library and the packages of a Python.
PARTS = "import os, sys, sysconfig as s; print(os.path.realpath(sys.executable), s.get_path('stdlib'), s.get_path('platlib'))"


def copy(source, root, name=None):
    """Copies a file or folder to its own place, or to a name, below a root."""
    target = root / str(name or source).lstrip("/")
    if source.is_dir():
        shutil.copytree(source, target, ignore=LEFT_OUT, dirs_exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def is_linked(file):
    """Whether a file is a program or a library."""
    return file.is_file() and not file.is_symlink() and file.open("rb").read(4) == b"\x7fELF"


def libraries(folder):
    """The libraries of the machine that the programs and libraries below a folder are linked with."""
    found = set()
    for file in filter(is_linked, folder.rglob("*")):
        lines = subprocess.run(["ldd", file], capture_output=True, text=True, check=False).stdout.splitlines()
        # `name => /path (address)`, and the dynamic linker as `/path (address)`.
        paths = [line.split("=>")[-1].split("(")[0].strip() for line in lines]
        found.update(Path(path) for path in paths if path.startswith("/") and not path.startswith(str(folder)))
    return found


def furnish(root, wheel, parts, programs, with_packages):
    """Fills a root with a Python, the wheel and programs."""
    program, library, packages = parts
    copy(program, root)
    copy(library, root)
    with zipfile.ZipFile(wheel) as files:
        files.extractall(root / "packages")
    if with_packages:
        copy(packages, root, "packages")
    for path in programs:
        copy(path, root, path.name)
    for path in libraries(root):
        copy(path, root)
    for name in ("dev", "proc", "tmp"):
        (root / name).mkdir(exist_ok=True)
    # Devices are not for every user to make; a file is enough for programs that read from it.
    (root / "dev/null").touch()


def check(wheel):
    """Computes with a wheel in a root of its own."""
    other = os.environ.get("SPELTER_PYTHON")
    parts = [Path(part) for part in run(other or sys.executable, "-c", PARTS).split()]
    programs = {HERE / "tests/compute.py": "computed on Spelter ("}
    if other:
        programs |= {PROGRAMS / name: wanted for name, wanted in clients(other)}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        furnish(root, wheel, parts, programs, other)
        there = sorted(str(path.relative_to(root)) for path in root.rglob("libvulkan*"))
        assert there == ["packages/spelter/lib/libvulkan.so.1"], there
        # With a /proc, as containers have.
        enter = ["unshare", "--fork", "--pid", f"--mount-proc={root}/proc", "chroot", root, parts[0]]
        if os.geteuid() != 0:
            enter.insert(1, "--map-root-user")
        for program, wanted in programs.items():
            name = f"/{program.name}"
            first = f"import runpy, spelter.vulkan; runpy.run_path('{name}')"
            for way in (["-m", "spelter", parts[0], name], ["-c", first]):
                shown = run(*enter, *way, PYTHONPATH="/packages", HOME="/")
                assert wanted in shown, shown
            print(f"{program.name}: {shown.splitlines()[-1]}")
    if not other:
        print("NOT TRIED with clients: SPELTER_PYTHON names no Python that has them", file=sys.stderr)


if __name__ == "__main__":
    check(Path(sys.argv[1]).resolve())
    print("the wheel works where there is no Vulkan package")
