#!/usr/bin/env bash
# Tries the Debian packages as they are installed: packages/deb/check.sh PACKAGES
# PACKAGES has the files of packages/release.sh. They are unpacked to a folder, since installing needs more rights; a
# program computes with the driver that the program of one package finds in the other. Needs dpkg-deb and python3, and
# lintian, which compares them with Debian's policy, if it is installed.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
packages="$(cd "$1" && pwd)"
root="$(mktemp -d)"
trap 'rm -r "$root"' EXIT
export XDG_CACHE_HOME="$root/cache"

fail() { echo "error: $1" >&2; exit 1; }
field() { dpkg-deb --field "$packages"/"$1"_*.deb "$2"; }

for package in "$packages"/*.deb; do
    [ -e "$package" ] || fail "no Debian packages in $packages"
    dpkg-deb --info "$package" >/dev/null
    dpkg-deb --extract "$package" "$root"
done

# The program is that of the driver, and the changelog ends at both. All three are texts of their own.
version="$(field spelter-vulkan-driver Version)"
[ "$(field spelter Version)" = "$version" ] || fail "the packages have different versions"
field spelter Depends | grep -qF "spelter-vulkan-driver (= $version)" || fail "spelter depends on another driver"
for name in spelter spelter-vulkan-driver; do
    zcat "$root/usr/share/doc/$name/changelog.Debian.gz" | head -1 | grep -qF "($version)" ||
        fail "the newest entry of packages/deb/changelog is not $version"
done
if command -v lintian >/dev/null; then
    # Only an upload to Debian itself closes a bug of its list.
    lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$packages"/*.deb
else
    echo "NOT TRIED: lintian is not installed" >&2
fi

library="$(cd "$root" && python3 -c '
import json
print(json.load(open("usr/share/vulkan/icd.d/spelter_icd.json"))["ICD"]["library_path"])')"
case "$library" in
/*) [ -e "$root$library" ] ;;
*) fail "the manifest names no path: $library" ;;
esac
for file in usr/share/man/man1/spelter-run.1 usr/share/bash-completion/completions/spelter; do
    [ -e "$root/$file" ] || [ -e "$root/$file.gz" ] || fail "no $file"
done
"$root/usr/bin/spelter" exec --no-loader -- python3 "$here/../python/tests/compute.py"
