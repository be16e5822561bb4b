"""Builds the wheel: the driver and a few lines of Python, with the standard library only.

    python3 packages/python/build.py --spelter target/dist/spelter --out target/packages

`spelter icd unpack` gives the driver under the loader's name. The wheel's tag, manylinux_2_X, is the newest version of
glibc that a symbol of the driver needs.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import struct
import subprocess
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def version():
    """The version of the workspace."""
    return re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)


def needed_glibc(library):
    """The newest GLIBC_2.X among the versions of symbols that an ELF library needs (.gnu.version_r): X."""
    start, size, count = struct.unpack_from("<Q10xHH", library, 40)[0], *struct.unpack_from("<HH", library, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", library, start + at * size) for at in range(count)]
    found = [section for section in sections if section[1] == 0x6FFFFFFE]  # SHT_GNU_verneed
    assert len(found) == 1, "not a library with versions of symbols"
    _, _, _, _, at, _, strings, entries, _, _ = found[0]
    names, minors = sections[strings][4], [0]
    for _ in range(entries):
        _, auxiliaries, _, first, following = struct.unpack_from("<HHIII", library, at)
        auxiliary = at + first
        for _ in range(auxiliaries):
            _, _, _, name, step = struct.unpack_from("<IHHII", library, auxiliary)
            text = library[names + name : library.index(b"\0", names + name)].decode()
            if text.startswith("GLIBC_2."):
                minors.append(int(text.split(".")[1]))
            auxiliary += step
        at += following
    return max(minors)


def unpacked(spelter):
    """The driver as `libvulkan.so.1`."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([spelter, "icd", "unpack", folder], check=True, stdout=subprocess.DEVNULL)
        return (Path(folder) / "libvulkan.so.1").read_bytes()


def build(spelter, out):
    """Writes the wheel to a folder; returns its path."""
    number, driver = version(), unpacked(spelter)
    tag = f"py3-none-manylinux_2_{needed_glibc(driver)}_{os.uname().machine}"
    about = f"spelter-{number}.dist-info"
    # The loader takes a path with a slash relative to the manifest.
    manifest = {"file_format_version": "1.0.1", "ICD": {"library_path": "./libvulkan.so.1", "api_version": "1.3.281"}}
    files = {f"spelter/{path.name}": path.read_text() for path in sorted((HERE / "spelter").glob("*.py"))}
    files = {name: text.replace("@VERSION@", number) for name, text in files.items()}
    files |= {
        "spelter/lib/libvulkan.so.1": driver,
        "spelter/lib/spelter_icd.json": json.dumps(manifest) + "\n",
        f"{about}/licenses/LICENSE-APACHE": (ROOT / "LICENSE-APACHE").read_text(),
        f"{about}/licenses/LICENSE-MIT": (ROOT / "LICENSE-MIT").read_text(),
        f"{about}/entry_points.txt": "[console_scripts]\nspelter-exec = spelter.__main__:main\n",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: spelter\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"{about}/METADATA": f"""Metadata-Version: 2.4
Name: spelter
Version: {number}
Summary: A Vulkan device made of CPU threads, for compute programs, without a GPU and without a Vulkan package
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{(HERE / "README.md").read_text()}""",
    }
    files = {name: content.encode() if isinstance(content, str) else content for name, content in files.items()}
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        for name, content in files.items()
    }
    record = "".join(f"{name},sha256={digests[name]},{len(content)}\n" for name, content in files.items())
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"spelter-{number}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            # A fixed time, so that the same driver gives the same wheel.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so.1") else 0o644) << 16
            archive.writestr(entry, content)
    return wheel


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Builds the wheel of Spelter.")
    parser.add_argument("--spelter", type=Path, required=True, help="the program spelter, which has the driver")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the wheel")
    options = parser.parse_args()
    print(build(options.spelter.resolve(), options.out))
