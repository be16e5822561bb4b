//! The driver's library: where it is, and its copy under the loader's name.
//!
//! A build beside which there is no library carries it (`carried.rs`) and unpacks it to the user's cache.

mod carried;
mod loader;
mod soname;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Component, Path, PathBuf};

use crate::environment::variable;
use crate::failure::Failure;
pub(crate) use loader::NAMES as LOADER_NAMES;

/// The variable with the path of the driver's library, if it is not in a default location.
const VARIABLE: &str = "SPELTER_ICD_LIBRARY";

/// The library's file name.
pub(crate) fn name() -> String {
    format!("{}vulkan_spelter{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// The driver's library as a file that outlives this process.
pub(crate) fn path() -> Result<PathBuf, Failure> {
    match find()? {
        LibraryLocation::File(path) => Ok(path),
        LibraryLocation::Carried(bytes) => {
            let path = in_cache(bytes)?;
            write(&path, bytes)?;
            Ok(path)
        }
    }
}

/// Where a library that this program carries is unpacked to, for its bytes: each build has a file of its own.
fn in_cache(bytes: &[u8]) -> Result<PathBuf, Failure> {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let version = format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish());
    Ok(user_folder("XDG_CACHE_HOME", ".cache")?.join("spelter").join(version).join(name()))
}

/// The library's path, without writing it, and whether this program carries it and unpacks it there.
pub(crate) fn place() -> Result<(PathBuf, bool), Failure> {
    match find()? {
        LibraryLocation::File(path) => Ok((path, false)),
        LibraryLocation::Carried(bytes) => Ok((in_cache(bytes)?, true)),
    }
}

/// The library's path for a manifest that stays: `kept` gets a copy of a library that this program carries, since a
/// cache may be emptied.
pub(crate) fn lasting_path(kept: &Path) -> Result<PathBuf, Failure> {
    match find()? {
        LibraryLocation::File(path) => Ok(path),
        LibraryLocation::Carried(bytes) => write(kept, bytes).map(|()| kept.to_owned()),
    }
}

/// Writes the library to a folder, under its own name and under the loader's.
pub(crate) fn unpack(folder: &Path) -> Result<[PathBuf; 2], Failure> {
    let bytes = match find()? {
        LibraryLocation::Carried(bytes) => bytes.to_owned(),
        LibraryLocation::File(path) => std::fs::read(&path).map_err(|error| Failure::file(&path, error))?,
    };
    let renamed =
        soname::rename(&bytes, loader::NAMES[0]).map_err(|problem| Failure::new(format!("{}: {problem}", name())))?;
    let paths = [folder.join(name()), folder.join(loader::NAMES[0])];
    write(&paths[0], &bytes)?;
    write(&paths[1], &renamed)?;
    Ok(paths)
}

/// Whether the dynamic linker finds a Vulkan loader.
pub(crate) fn has_loader() -> bool {
    loader::is_there()
}

/// Where the library is.
enum LibraryLocation {
    File(PathBuf),
    Carried(&'static [u8]),
}

/// The library: at the variable's path; with this program, where cargo or a package puts it; or inside.
fn find() -> Result<LibraryLocation, Failure> {
    if let Some(path) = variable(VARIABLE) {
        let path = std::path::absolute(path).map_err(Failure::from)?;
        return if path.is_file() {
            Ok(LibraryLocation::File(path))
        } else {
            Err(Failure::new(format!("{VARIABLE}={}: no such file", path.display())))
        };
    }
    let name = name();
    let program = std::env::current_exe()?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let multiarch = format!("../lib/{}-linux-gnu", std::env::consts::ARCH);
    let archive = format!("spelter-driver-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    // `deps` first: cargo builds the library there with this program, and copies it only where it was asked to. The
    // last two are those of a release's archives: unpacked over each other, and side by side.
    let unpacked = format!("../../{archive}");
    let places = ["deps", ".", "../lib", "../lib/spelter", &multiarch, "..", &unpacked];
    let places = places.map(|place| without_parents(&beside.join(place)));
    let file = places.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
    let found = file.map(LibraryLocation::File).or_else(|| carried::library().map(LibraryLocation::Carried));
    found.ok_or_else(|| {
        let looked: Vec<_> = places.iter().map(|folder| folder.display().to_string()).collect();
        Failure::new(format!(
            "the Vulkan driver, {name}, is not with this program: looked in {}. Unpack the release's archive \
             {archive}.tar.xz beside that of the program, or install the package spelter-vulkan-driver; in a checkout, \
             run `cargo build -p spelter-icd` with the profile of this program; or set {VARIABLE} to the driver's path",
            looked.join(", ")
        ))
    })
}

/// The path of a folder without `.` and `..`. The path of a running program has no symbolic links.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// A folder of the user: the variable's, or one in the home folder.
pub(crate) fn user_folder(name: &str, in_home: &str) -> Result<PathBuf, Failure> {
    let folder = variable(name).map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(variable("HOME")?).join(in_home)));
    folder.ok_or_else(|| Failure::new(format!("neither {name} nor HOME is set")))
}

/// Makes a file have these bytes. Processes that have the old file mapped keep that.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = made.and_then(|()| std::fs::write(&new, bytes)).and_then(|()| std::fs::rename(&new, path));
    written.map_err(|error| Failure::file(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_if_it_differs() {
        use std::os::unix::fs::MetadataExt;
        let path = std::env::temp_dir().join(format!("spelter-write-{}/a/b.so", std::process::id()));
        let inode = || std::fs::metadata(&path).unwrap().ino();
        write(&path, b"one").unwrap();
        let first = inode();
        write(&path, b"one").unwrap();
        assert_eq!(first, inode());
        let kept = std::fs::File::open(&path).unwrap();
        write(&path, b"two").unwrap();
        assert_ne!(first, inode(), "a new file");
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        drop(kept);
        std::fs::remove_dir_all(path.ancestors().nth(2).unwrap()).unwrap();
    }
}
