#!/usr/bin/env bash
# Builds the files of a release in target/packages: archives, the wheel, Debian packages, notes and checksums.
#     packages/release.sh [PROFILE]
# PROFILE is cargo's, dist by default. Needs Rust, python3, tar, xz and strip; for the Debian packages cargo-deb
# (`cargo install cargo-deb`), without which they are left out with a message.
set -euo pipefail
cd "$(dirname "$0")/.."
profile="${1:-dist}"
out="$PWD/target/packages"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
# The largest file of a release, in bytes.
maximum=6000000

rm -rf "$out"
mkdir -p "$out/man" "$out/completions"

# Packages have the driver as a file of its own, so the program carries none.
cargo build --quiet --profile "$profile" -p spelter-icd -p spelter-cli --no-default-features
# Packed without symbols, which nothing needs at run time; those in target/ keep them for profilers.
stripped="$out/stripped"
mkdir "$stripped"
for file in spelter libvulkan_spelter.so; do
    strip --strip-unneeded -o "$stripped/$file" "target/$profile/$file"
done
spelter="$stripped/spelter"

"$spelter" man "$out/man"
for shell in bash zsh fish; do
    case $shell in zsh) name=_spelter ;; *) name=spelter.$shell ;; esac
    "$spelter" completions "$shell" >"$out/completions/$name"
done

pack() { # pack FOLDER: an archive of the folder, with the same bytes for the same files
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --directory="$out" "$1" |
        xz -9 --extreme >"$out/$1.tar.xz"
    rm -r "${out:?}/$1"
}

driver="spelter-driver-$version-x86_64-linux"
"$spelter" icd unpack "$out/$driver" >/dev/null
cp LICENSE-APACHE LICENSE-MIT "$out/$driver/"
pack "$driver"

# Unpacked over each other, the driver is where the program looks for it: the archive has a folder bin.
program="spelter-$version-x86_64-linux"
mkdir -p "$out/$program/bin" "$out/$program/share/man/man1"
cp "$spelter" "$out/$program/bin/"
cp "$out"/man/*.1 "$out/$program/share/man/man1/"
cp -r "$out/completions" "$out/$program/share/"
cp LICENSE-APACHE LICENSE-MIT "$out/$program/"
pack "$program"

python3 packages/python/build.py --spelter "$spelter" --out "$out" >/dev/null

if cargo deb --version >/dev/null 2>&1; then
    for package in spelter-icd spelter-cli; do
        cargo deb --quiet --no-build --profile "$profile" -p "$package" --output "$out"
    done
else
    echo "release: NO DEBIAN PACKAGES: cargo-deb is not installed" >&2
fi

# The notes are the newest part of the changelog, up to its lists.
awk '/^## /{parts++} /^### /{exit} parts == 1' CHANGELOG.md >"$out/NOTES.md"
rm -r "$out/man" "$out/completions" "$stripped"
cd "$out"
sha256sum -- *.tar.xz *.whl $(ls ./*.deb 2>/dev/null | sed 's,^\./,,') >SHA256SUMS

for file in *.tar.xz *.whl *.deb; do
    [ -e "$file" ] || continue
    size="$(stat --format=%s "$file")"
    printf '%9s  %s\n' "$size" "$file"
    if [ "$size" -gt "$maximum" ]; then
        echo "error: $file has more than $maximum bytes" >&2
        exit 1
    fi
done
