//! The time that each pipeline of the process took, in a file that is complete after each submission, for
//! `spelter exec --profile`: many programs end without destroying their devices, and some are killed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use spelter_driver::profile::Profile;
use spelter_driver::timeline::create_own;
use spelter_driver::{Chunk, Observer, SubmissionId};
use spelter_locks::{Mutex, PerProcess};

use crate::current_call::Owner;
use crate::message;
use crate::options::Options;

/// The profile of the process.
#[derive(Debug)]
struct ProfileFile {
    path: PathBuf,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    file: File,
    /// Bytes of the file: a shorter text is padded, so that no end of an older one stays.
    len: usize,
    devices: Vec<Arc<Profile>>,
    failed: Option<String>,
}

impl ProfileFile {
    fn create(path: &Path) -> std::io::Result<Self> {
        let (file, path) = create_own(path)?;
        file.set_len(0)?;
        let file = Self { path, written: Mutex::new(Written { file, len: 0, devices: Vec::new(), failed: None }) };
        file.write();
        Ok(file)
    }

    fn write(&self) {
        let mut written = self.written.lock();
        if written.failed.is_some() {
            return;
        }
        let programs = written.devices.iter().flat_map(|device| device.report().programs);
        let programs: Vec<String> = programs.map(|program| program.json()).collect();
        let mut text = format!("{{\"programs\":[\n{}\n]}}\n", programs.join(",\n"));
        while text.len() < written.len {
            text.push('\n');
        }
        match written.file.write_all_at(text.as_bytes(), 0) {
            Ok(()) => written.len = text.len(),
            Err(error) => written.failed = Some(error.to_string()),
        }
    }
}

/// The profile of this process, if `SPELTER_PROFILE` is set. Each device warns if it cannot be written.
fn profile(owner: Owner) -> Option<Arc<ProfileFile>> {
    static PROFILE: PerProcess<OnceLock<Result<Arc<ProfileFile>, String>>> = PerProcess::new(OnceLock::new);
    let path = Options::get().profile.as_ref()?;
    let create = || ProfileFile::create(path).map(Arc::new).map_err(|error| error.to_string());
    match PROFILE.get().get_or_init(create) {
        Ok(profile) => Some(Arc::clone(profile)),
        Err(error) => {
            unwritable(owner, path, error);
            None
        }
    }
}

/// Warns that the profile cannot be written, which fails no call.
fn unwritable(owner: Owner, path: &Path, error: &str) {
    let text = format!("SPELTER_PROFILE: the profile {} cannot be written: {error}", path.display());
    message::warn(owner, "spelter-profile", text);
}

/// The profile of a device, in the file of its process.
#[derive(Debug)]
pub(crate) struct DeviceProfile {
    file: Arc<ProfileFile>,
    profile: Arc<Profile>,
}

impl DeviceProfile {
    /// For a device of the instance, if the environment asks for a profile.
    pub(crate) fn of_device(owner: Owner) -> Option<Self> {
        profile(owner).map(Self::new)
    }

    fn new(file: Arc<ProfileFile>) -> Self {
        let profile = Profile::new(0);
        file.written.lock().devices.push(Arc::clone(&profile));
        Self { file, profile }
    }

    /// Warns if the profile could not be written.
    pub(crate) fn finish(&self, owner: Owner) {
        // Without the lock: a messenger may call Vulkan.
        let failed = self.file.written.lock().failed.clone();
        if let Some(error) = failed {
            unwritable(owner, &self.file.path, &error);
        }
    }
}

impl Observer for DeviceProfile {
    fn worked(&self, chunk: &Chunk<'_>) {
        self.profile.worked(chunk);
    }

    fn ran(&self, submission: SubmissionId, done: bool, start: Instant, end: Instant) {
        self.profile.ran(submission, done, start, end);
        if done {
            // Before the end of the submission is signalled, after which the program may exit.
            self.file.write();
        }
    }
}

#[cfg(test)]
mod tests {
    use spelter_driver::CommandId;

    use super::*;

    #[test]
    fn the_file_has_the_totals_of_all_devices_after_each_submission() {
        let path = std::env::temp_dir().join(format!("spelter-profile-{}.json", std::process::id()));
        let file = Arc::new(ProfileFile::create(&path).unwrap());
        let read = || std::fs::read_to_string(&path).unwrap();
        assert_eq!(read(), "{\"programs\":[\n\n]}\n");
        let devices = [DeviceProfile::new(Arc::clone(&file)), DeviceProfile::new(file)];
        for (device, name) in devices.iter().zip(["first", "second"]) {
            for serial in 1..=2 {
                let (now, submission) = (Instant::now(), SubmissionId { queue: 0, serial });
                let command = CommandId { submission, recording: 0, phase: 0, command: 0 };
                let (dispatch, units) = (None, 3);
                device.worked(&Chunk { worker: 0, command, name, dispatch, bytes: 0, units, start: now, end: now });
                device.ran(submission, true, now, now);
            }
        }
        let text = read();
        for name in ["first", "second"] {
            assert!(text.contains(&format!("{{\"name\":\"{name}\",\"pipeline\":null,\"calls\":2")), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
