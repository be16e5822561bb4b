"""Makes Spelter the Vulkan of this process: import it before anything that uses Vulkan.

The dynamic linker gives a library that is loaded to every later search for its name, and the driver's name is that of
the Vulkan loader, ``libvulkan.so.1``.
"""

import ctypes
import os

from . import LIBRARY, environment, problem


def _loaded():
    """The Vulkan libraries of this process: paths."""
    with open("/proc/self/maps") as maps:
        fields = [line.split(maxsplit=5) for line in maps]
    paths = {parts[5].strip() for parts in fields if len(parts) == 6}
    return {path for path in paths if os.path.basename(path).startswith("libvulkan.so")}


if _missing := problem():
    raise ImportError(_missing)
_others = _loaded() - {str(LIBRARY)}
if _others:
    raise ImportError(f"{', '.join(sorted(_others))} is loaded already: import spelter.vulkan before what uses Vulkan")
os.environ.update(environment(os.environ))

#: The driver, which stays loaded.
library = ctypes.CDLL(str(LIBRARY))
