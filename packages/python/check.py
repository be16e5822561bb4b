"""Tries a wheel in an empty virtual environment, without its index and without a Vulkan loader in the process.

    python3 packages/python/check.py target/packages/spelter-0.1.0-….whl

With SPELTER_PYTHON, a Python with wgpu, ncnn and numpy, their programs run on the wheel as well, and that of taichi if it
has that, too.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent.parent / "driver/icd/tests/programs"

#: The largest wheel, in bytes.
MAX_BYTES = 6_000_000

#: Programs with Vulkan's clients, which the driver's tests run, too: the package that each needs, and what it prints.
CLIENTS = [
    ("kernels.py", "wgpu", "13 ok on Spelter"),
    ("network.py", "ncnn", "network: ok on Spelter"),
    ("fields.py", "taichi", "fields: ok"),
]

#: Packages that need not be there.
OPTIONAL = {"taichi"}


def run(*command, status=0, **variables):
    """What a command prints. It must end with the status."""
    # Variables of the caller would hide those that the wheel has to set.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPELTER_", "VK_", "WGPU_", "LD_"))}
    command = [str(part) for part in command]
    ended = subprocess.run(command, capture_output=True, text=True, env={**kept, **variables}, check=False)
    assert ended.returncode == status, f"{command}: status {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout + (ended.stderr if status else "")


def check(wheel):
    """Installs the wheel, and computes with it in all its ways."""
    assert wheel.stat().st_size <= MAX_BYTES, f"{wheel.stat().st_size} bytes are more than {MAX_BYTES}"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder) / "bin"
        python, execute = scripts / "python", scripts / "spelter-exec"
        run(python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel)
        run(python, "-m", "pip", "check", "--disable-pip-version-check")
        program = HERE / "tests/compute.py"
        for command in ([execute], [execute, "--"], [python, "-m", "spelter"]):
            shown = run(*command, python, program)
            assert shown.startswith("computed on Spelter ("), shown
        shown = run(python, program, "--preload")
        assert shown.startswith("computed on Spelter ("), shown
        # Statuses and messages.
        assert "no COMMAND" in run(execute, status=2) and "--no" in run(execute, "--no", status=2)
        assert "there-is-none" in run(execute, "there-is-none", status=127)
        run(execute, "/", status=126)
        run(execute, "sh", "-c", "exit 7", status=7)
        assert run(execute, "--version") == f"spelter-exec {wheel.name.split('-')[1]}\n"
        late = "import ctypes, spelter; ctypes.CDLL(str(spelter.LIBRARY)); import spelter.vulkan"
        run(python, "-c", late)
        if other := os.environ.get("SPELTER_PYTHON"):
            with_clients(Path(folder), python, execute, other)
        else:
            print("NOT TRIED with wgpu and ncnn: SPELTER_PYTHON names no Python that has them", file=sys.stderr)
        # Without the driver, the message says where it should be and what to do.
        library = Path(run(python, "-c", "import spelter; print(spelter.LIBRARY)").strip())
        library.unlink()
        for command in ([execute, "true"], [python, "-c", "import spelter.vulkan"]):
            shown = run(*command, status=1)
            assert f"{library} does not exist" in shown and "pip install" in shown, shown


def clients(other):
    """The names of the programs whose packages `other` has, with what they print."""
    missing = []
    for name, package, wanted in CLIENTS:
        if subprocess.run([other, "-c", f"import {package}"], capture_output=True, check=False).returncode == 0:
            yield name, wanted
        elif package not in OPTIONAL:
            missing.append(package)
    assert not missing, f"{other} has no {missing}"


def with_clients(folder, python, execute, other):
    """Runs the programs of clients whose packages `other` has."""
    packages = run(other, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()
    for name, wanted in clients(other):
        text = (PROGRAMS / name).read_text()
        preloading = folder / name
        preloading.write_text(f"import spelter.vulkan\n{text}")
        for command in ([execute, python, PROGRAMS / name], [python, preloading]):
            shown = run(*command, PYTHONPATH=packages)
            assert wanted in shown, shown


if __name__ == "__main__":
    check(Path(sys.argv[1]).resolve())
    print("the wheel works")
