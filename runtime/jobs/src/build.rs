//! The build of the running program: results of two builds are not those of one job array, although the command, the
//! options and the numbers of the jobs are equal.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::sync::OnceLock;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// The version, and a hash of the program's file: equal on all machines that have the same file. Sources would not show
/// the compiler and its options, on which a result may depend, too.
pub(super) fn own() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        // Of a program that was replaced while it runs, this still is its own file.
        let process = Path::new("/proc/self/exe");
        let hash = hash_of(process).or_else(|_| hash_of(&std::env::current_exe()?));
        let hash = hash.map_or_else(|_| "unknown".to_owned(), |hash| format!("{hash:016x}"));
        format!("{} {hash}", env!("CARGO_PKG_VERSION"))
    })
}

/// The build of results that another program made, whose file this is: also a hash of that. Of a program that cannot be
/// read, the own build.
pub(super) fn with_program(path: Option<&Path>) -> String {
    match path.map(hash_of) {
        Some(Ok(hash)) => format!("{} with program {hash:016x}", own()),
        _ => own().to_owned(),
    }
}

fn hash_of(path: &Path) -> io::Result<u64> {
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    let mut hash = Words(0xcbf2_9ce4_8422_2325);
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(hash.finish());
        }
        hash.write(bytes);
        let count = bytes.len();
        file.consume(count);
    }
}

/// As FNV-1a, but of eight bytes at a time: a program of 100 MB takes less than a tenth of a second.
struct Words(u64);

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        for word in words.chain(rest.iter().map(|byte| u64::from(*byte))) {
            let product = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
            // A product only carries upwards: without this the high bits of a word would not reach the low ones.
            self.0 = product ^ (product >> 29);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_of_a_file_counts() {
        let hash = |bytes: &[u8]| {
            let mut hash = Words(1);
            hash.write(bytes);
            hash.finish()
        };
        let mut bytes = [7; 27];
        let original = hash(&bytes);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash(&bytes), original, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(own(), own());
        assert!(!own().ends_with("unknown"), "{}", own());
    }
}
