//! The user's key for stored machine code (ADR 10): 32 random bytes in a file that only the user can read.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use spelter_driver::SealKey;

/// The key of the user whose process this is; none if there is no place for it, or anybody else could know it.
pub(super) fn key() -> Option<&'static SealKey> {
    static KEY: OnceLock<Option<SealKey>> = OnceLock::new();
    KEY.get_or_init(|| find(&file()?, user()?)).as_ref()
}

/// In the folder for caches, as the XDG Base Directory Specification has it.
fn file() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
    Some(caches.join("spelter/pipeline.key"))
}

/// Who the process is: a program with more rights than its caller belongs to root here, whatever it says of its home.
fn user() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|process| process.uid())
}

/// The key in the file, which is made if it is not there.
fn find(file: &Path, user: u32) -> Option<SealKey> {
    if let Some(key) = read(file, user) {
        return Some(key);
    }
    let folder = file.parent()?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    let mut random = [0; 32];
    File::open("/dev/urandom").ok()?.read_exact(&mut random).ok()?;
    // Written under another name first: a file of that name is whole, and the first one stays.
    let draft = folder.join(format!("pipeline.key.{}", std::process::id()));
    let mut draft_file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).ok()?;
    let written = draft_file.write_all(&random).and_then(|()| std::fs::hard_link(&draft, file));
    std::fs::remove_file(&draft).ok()?;
    // Somebody else may have been faster; then theirs is the key.
    let _ = written;
    read(file, user)
}

/// The key in the file, if the user alone can read and write it.
fn read(file: &Path, user: u32) -> Option<SealKey> {
    /// `O_NOFOLLOW`: a link could lead to a file that others know.
    const NO_FOLLOW: i32 = if cfg!(any(target_arch = "aarch64", target_arch = "arm")) { 0o100_000 } else { 0o400_000 };
    let mut file = OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(file).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.uid() != user || about.mode() & 0o077 != 0 || about.len() != 32 {
        return None;
    }
    let mut key = [0; 32];
    file.read_exact(&mut key).ok()?;
    Some(SealKey(key))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_not_trusted_where_others_can_read_it() {
        let folder = std::env::temp_dir().join(format!("spelter-key-{}", std::process::id()));
        let (file, user) = (folder.join("cache/spelter/pipeline.key"), user().unwrap());
        let first = find(&file, user).unwrap();
        assert_ne!(first.0, [0; 32]);
        assert_eq!(find(&file, user).unwrap().0, first.0);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "the draft is gone");
        assert!(find(&file, user + 1).is_none(), "another user's");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(find(&file, user).is_none(), "others can read it");
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(find(&file, user).is_none(), "a link");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
