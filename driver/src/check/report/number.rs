//! Numbers of rules and findings: equal in every process and run, since they are hashes of names.

use std::hash::{Hash, Hasher};

use super::super::Finding;

/// `messageIdNumber` of a rule's name, as validation layers number theirs: 32 bits of a hash of the name.
pub fn message_number(name: &str) -> i32 {
    let hash = fnv1a(FNV_BASIS, name.as_bytes());
    ((hash >> 32) as u32 ^ hash as u32).cast_signed()
}

/// 16 hexadecimal digits, equal for findings of one [`identity`](Finding::identity): of all processes of a program, and
/// of runs that are compared.
pub fn fingerprint(finding: &Finding) -> String {
    let mut hasher = Fnv(FNV_BASIS);
    finding.identity().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a with 64 bits (Fowler, Noll, Vo).
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// The standard library's hashers are not fixed between versions.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = fnv1a(self.0, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_fnv_1a() {
        // From the authors' list of test vectors.
        assert_eq!(fnv1a(FNV_BASIS, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV_BASIS, b"foobar"), 0x8594_4171_f739_67e8);
        assert_ne!(message_number("SPELTER-RACE-RAW"), message_number("SPELTER-RACE-WAR"));
    }
}
