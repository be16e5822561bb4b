#!/usr/bin/env python3
"""What checked mode costs Vulkan programs: runs each by turns unchecked and checked, and prints a table.

    costs.py [--runs N] [--only NAME] [--json FILE] DRIVER PROGRAMS

DRIVER is libvulkan_spelter.so. PROGRAMS has a program on each line, "name | folder | command", run by a shell. Each
ratio is of the least of the runs, which other work on the machine disturbs least. Processor time counts on a shared
machine; memory is the largest resident set of a process.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time


def run(folder, command, icd, checked, log):
    env = dict(os.environ, VK_DRIVER_FILES=icd, VK_ICD_FILENAMES=icd)
    for name in [name for name in env if name.startswith("SPELTER_")]:
        del env[name]
    if checked:
        env.update(SPELTER_CHECK="1", SPELTER_CHECK_EXITCODE="0", SPELTER_CHECK_JSON=log)
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(["sh", "-c", "exec " + command], cwd=folder, env=env, stdout=output, stderr=output)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    cpu = usage.ru_utime + usage.ru_stime
    return {"wall": wall, "cpu": cpu, "mb": usage.ru_maxrss / 1024, "status": child.returncode}


# Counts of a summary that say that not all was checked.
PARTIAL = [
    "undecided",
    "refuted_in_part",
    "lines_not_compared",
    "accesses_not_checked",
    "commands_forgotten",
    "signals_forgotten",
    "findings_dropped",
]


def findings(log):
    """Errors, warnings and notes, and what was not checked: the last summary of each process."""
    counts, gaps = {"error": 0, "warning": 0, "note": 0}, set()
    seen = set()
    for line in open(log) if os.path.exists(log) else []:
        value = json.loads(line)
        severity = value.get("severity")
        if severity in counts and value.get("fingerprint") not in seen:
            seen.add(value.get("fingerprint"))
            counts[severity] += 1
        checked = value.get("checked") or {}
        gaps |= {name for name in PARTIAL if checked.get(name)}
    return counts, sorted(gaps)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("driver")
    parser.add_argument("programs")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--json", help="appends an object for each program")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="costs-")
    icd = os.path.join(folder, "icd.json")
    with open(icd, "w") as file:
        library = os.path.abspath(args.driver)
        json.dump({"file_format_version": "1.0.1", "ICD": {"library_path": library, "api_version": "1.3.280"}}, file)
    columns = ["program", "unchecked, s of processor time", "checked", "ratio", "wall time", "MB", "MB checked"]
    print("| " + " | ".join(columns) + " | found |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    for line in open(args.programs):
        if not line.strip() or line.startswith("#"):
            continue
        name, where, command = (part.strip() for part in line.split("|", 2))
        if args.only and args.only not in name:
            continue
        runs = {False: [], True: []}
        for number in range(args.runs):
            for checked in (False, True):
                log = os.path.join(folder, f"{name.replace(' ', '-').replace('/', '-')}.{number}.jsonl")
                runs[checked].append(run(where, command, icd, checked, log))
        least = {key: {of: min(r[of] for r in runs[key]) for of in ("wall", "cpu")} for key in runs}
        mb = {key: max(r["mb"] for r in runs[key]) for key in runs}
        counts, gaps = findings(log)
        found = ", ".join(f"{count} {what}{'s' if count != 1 else ''}" for what, count in counts.items() if count)
        status = sorted({r["status"] for key in runs for r in runs[key]})
        notes = ([f"status {status}"] if status != [0] else []) + gaps
        cpu = [least[key]["cpu"] for key in (False, True)]
        wall = least[True]["wall"] / least[False]["wall"]
        print(f"| {name} | {cpu[0]:.2f} | {cpu[1]:.2f} | {cpu[1] / cpu[0]:.2f} | {wall:.2f} | {mb[False]:.0f} | "
              f"{mb[True]:.0f} | {'; '.join([found or '–'] + notes)} |", flush=True)
        if args.json:
            with open(args.json, "a") as file:
                both = {"unchecked": runs[False], "checked": runs[True]}
                file.write(json.dumps({"name": name, "command": command, "runs": both, "found": counts}) + "\n")


main()
