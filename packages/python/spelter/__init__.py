"""Spelter: a Vulkan device made of CPU threads, for programs that compute.

``spelter-exec COMMAND`` runs a program on it; ``import spelter.vulkan`` makes it the Vulkan of this process. Neither
needs a Vulkan package on the machine: the library of this wheel takes the place of the loader.
"""

from pathlib import Path

__version__ = "@VERSION@"

#: The folder of the driver, which is named as the Vulkan loader.
FOLDER = Path(__file__).resolve().parent / "lib"

#: The driver.
LIBRARY = FOLDER / "libvulkan.so.1"

#: The manifest by which a Vulkan loader that is there finds the driver, and no other one.
MANIFEST = FOLDER / "spelter_icd.json"


def problem():
    """Why there is no driver here, or None."""
    if LIBRARY.is_file():
        return None
    return (
        f"{LIBRARY} does not exist: this folder is not that of an installed wheel. Build one by packages/release.sh in a "
        "checkout of Spelter, and install it by `pip install target/packages/spelter-*.whl`"
    )


def environment(now):
    """The variables for programs, beside those of ``now``; what ``now`` has of Spelter's and wgpu's is kept.

    Clients of Vulkan for Python (wgpu, taichi) require a graphics queue, and wgpu hides devices that claim no
    conformance. ``SPELTER_ADVERTISE_GRAPHICS=0`` and ``SPELTER_CONFORMANCE=0`` take the claims back.
    """
    claims = {
        "SPELTER_ADVERTISE_GRAPHICS": "1",
        "SPELTER_CONFORMANCE": "1.3.0.0",
        "WGPU_ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER": "1",
    }
    return {
        "VK_DRIVER_FILES": str(MANIFEST),
        "VK_ICD_FILENAMES": str(MANIFEST),
        **{name: value for name, value in claims.items() if not now.get(name)},
    }
