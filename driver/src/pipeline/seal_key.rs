//! The user's key for stored machine code (ADR 10): 32 random bytes in a file that only the user can read.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use spelter_locks::Computed;

use super::SealKey;
use crate::environment::variable;

impl SealKey {
    /// The key of the process's user, which is read once, and created if there is none: the file `spelter/pipeline.key`
    /// in the user's cache folder, which the environment variables `XDG_CACHE_HOME` and `HOME` name. `None` if there is
    /// no place for it, or if another user could read it.
    pub fn of_user() -> Option<&'static Self> {
        static KEY: Computed<Option<SealKey>> = Computed::new();
        KEY.get_or_compute(|| find(&file(variable)?, user()?)).as_ref()
    }
}

/// The file in the cache folder of the XDG Base Directory Specification.
fn file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(caches.join("spelter/pipeline.key"))
}

/// The user of the process: a program with more rights than its caller counts as root's, whatever its `HOME` is.
fn user() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|process| process.uid())
}

/// The key in the file. The file is created if it does not exist, and replaced if it is the user's and unusable:
/// truncated, empty after a crash, or readable by others. Data that were sealed with the old key are then ignored.
fn find(file: &Path, user: u32) -> Option<SealKey> {
    if let Some(key) = read(file, user) {
        return Some(key);
    }
    let replace = match file.symlink_metadata() {
        Ok(about) if about.uid() == user && !about.is_dir() => true,
        Ok(_) => return None,
        Err(_) => false,
    };
    let folder = file.parent()?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    let mut random = [0; 40];
    File::open("/dev/urandom").ok()?.read_exact(&mut random).ok()?;
    let (random, name) = random.split_at(32);
    // Written under another name first, so that the file is always complete. An existing file stays unless it is
    // unusable.
    let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = folder.join(format!("pipeline.key.{name}"));
    let mut draft_file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).ok()?;
    let written = draft_file.write_all(random).and_then(|()| draft_file.sync_all());
    let put =
        written.and_then(|()| if replace { std::fs::rename(&draft, file) } else { std::fs::hard_link(&draft, file) });
    // If another process was faster, its key is used. A draft that became the file does not exist any more.
    let (_, _) = (put, std::fs::remove_file(&draft));
    read(file, user)
}

/// The key in the file, if it is valid and only the user can read and write it.
fn read(file: &Path, user: u32) -> Option<SealKey> {
    /// `O_NOFOLLOW`: a link could refer to a file that others can read.
    const NO_FOLLOW: i32 = if cfg!(any(target_arch = "aarch64", target_arch = "arm")) { 0o100_000 } else { 0o400_000 };
    let mut file = OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(file).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.uid() != user || about.mode() & 0o077 != 0 || about.len() != 32 {
        return None;
    }
    let mut key = [0; 32];
    file.read_exact(&mut key).ok()?;
    // After a crash the file may consist of zeros.
    (key != [0; 32]).then_some(SealKey(key))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_created_once_and_replaced_if_others_can_read_it() {
        let folder = std::env::temp_dir().join(format!("spelter-key-{}", std::process::id()));
        let (file, user) = (folder.join("cache/spelter/pipeline.key"), user().unwrap());
        let first = find(&file, user).unwrap();
        assert_ne!(first.0, [0; 32]);
        assert_eq!(find(&file, user).unwrap().0, first.0);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "the draft is gone");
        assert!(find(&file, user + 1).is_none(), "another user's");
        assert_eq!(find(&file, user).unwrap().0, first.0, "the key stays");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let second = find(&file, user).unwrap();
        assert_ne!(second.0, first.0, "others could read the old key");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_damaged_key_is_replaced() {
        let folder = std::env::temp_dir().join(format!("spelter-damaged-key-{}", std::process::id()));
        let (file, user) = (folder.join("pipeline.key"), user().unwrap());
        let mut seen = vec![find(&file, user).unwrap().0];
        let damages: [&dyn Fn(&Path); 5] = [
            &|file| std::fs::write(file, [7; 31]).unwrap(),
            &|file| std::fs::write(file, []).unwrap(),
            &|file| std::fs::write(file, [7; 33]).unwrap(),
            &|file| std::fs::write(file, [0; 32]).unwrap(),
            &|file| {
                std::fs::remove_file(file).unwrap();
                std::os::unix::fs::symlink("/dev/zero", file).unwrap();
            },
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            damage(&file);
            let key = find(&file, user).map(|key| key.0);
            assert!(key.is_some_and(|key| !seen.contains(&key)), "damage {number}: {key:?}");
            assert_eq!(find(&file, user).map(|key| key.0), key, "damage {number}: the new one stays");
            seen.extend(key);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "damage {number}: the draft is gone");
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(find(&file, user).is_none(), "a folder is left alone");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
