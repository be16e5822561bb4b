"""``spelter-exec COMMAND``: runs a program on Spelter, without a Vulkan package on the machine."""

import os
import sys

from . import FOLDER, __version__, environment, problem

USAGE = """usage: spelter-exec [--] COMMAND [ARGUMENT...]

Runs a program with the Vulkan driver of Spelter in the place of the Vulkan loader. The exit status is the program's,
127 if there is no such program, 126 if it cannot be run, 2 for wrong usage, 1 without a driver."""


def main():
    command = sys.argv[1:]
    if command[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if command[:1] in (["-V"], ["--version"]):
        print(f"spelter-exec {__version__}")
        return 0
    if command[:1] == ["--"]:
        command = command[1:]
    elif command and command[0].startswith("-"):
        print(f"error: there is no option {command[0]}\n\n{USAGE}", file=sys.stderr)
        return 2
    if not command:
        print(f"error: no COMMAND\n\n{USAGE}", file=sys.stderr)
        return 2
    if missing := problem():
        print(f"error: {missing}", file=sys.stderr)
        return 1
    search = [str(FOLDER), *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
    changed = {**os.environ, **environment(os.environ), "LD_LIBRARY_PATH": ":".join(search)}
    try:
        os.execvpe(command[0], command, changed)
    except OSError as error:
        print(f"error: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main())
