//! Whether the machine has a Vulkan loader, so that `exec` knows whether the driver has to take its place.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The loader's names: the one that programs are linked with and most open, and the one that some open (ncnn).
pub(crate) const NAMES: [&str; 2] = ["libvulkan.so.1", "libvulkan.so"];

/// The folders that the dynamic linker searches when neither `LD_LIBRARY_PATH` nor its cache have a library.
const FOLDERS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Whether the dynamic linker finds a Vulkan loader.
pub(super) fn is_there() -> bool {
    let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
    candidates(std::env::var_os("LD_LIBRARY_PATH").as_deref(), &cache).iter().any(|path| path.is_file())
}

/// Where a loader would be: in folders of `LD_LIBRARY_PATH`, at the paths of the cache, in default folders.
fn candidates(search: Option<&OsStr>, cache: &[u8]) -> Vec<PathBuf> {
    let searched = search.into_iter().flat_map(std::env::split_paths).filter(|folder| !folder.as_os_str().is_empty());
    let folders = searched.chain(FOLDERS.map(PathBuf::from));
    // The cache's format has changed over time; in each version its paths are strings that end in a zero.
    let cached = cache.split(|&byte| byte == 0).filter_map(|text| std::str::from_utf8(text).ok()).map(Path::new);
    let cached = cached.filter(|path| path.is_absolute() && path.file_name() == Some(OsStr::new(NAMES[0])));
    folders.map(|folder| folder.join(NAMES[0])).chain(cached.map(Path::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_is_searched_where_the_linker_searches() {
        let found = |search: Option<&str>, cache: &[u8]| {
            let paths = candidates(search.map(OsStr::new), cache).into_iter();
            paths.map(|path| path.display().to_string()).filter(|path| !path.starts_with("/lib")).collect::<Vec<_>>()
        };
        let usual = ["/usr/lib64/libvulkan.so.1", "/usr/lib/libvulkan.so.1"];
        assert_eq!(found(None, b""), usual);
        assert_eq!(
            found(Some("/a::b"), b"").as_slice(),
            &["/a/libvulkan.so.1", "b/libvulkan.so.1", usual[0], usual[1]]
        );
        let cache =
            b"ld.so-1.7.0\0\x01\xfflibvulkan.so.1\0/opt/x/libvulkan.so.1\0/opt/x/libvulkan.so.10\0/opt/libm.so.6\0";
        assert_eq!(found(None, cache).as_slice(), &[usual[0], usual[1], "/opt/x/libvulkan.so.1"]);
    }
}
