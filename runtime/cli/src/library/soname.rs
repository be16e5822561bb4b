//! The name by which the dynamic linker knows a library (`DT_SONAME`): a copy of the driver under the loader's name,
//! `libvulkan.so.1`, is found by every later search for that name, wherever the copy was loaded from.

/// `PT_LOAD` and `PT_DYNAMIC` of `<elf.h>`.
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;

/// `DT_STRTAB` and `DT_SONAME` of `<elf.h>`.
const STRTAB: u64 = 5;
const SONAME: u64 = 14;

/// The offset of the name in a library, and its length.
fn find(library: &[u8]) -> Option<(usize, usize)> {
    // A 64-bit little-endian file.
    if !library.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size) = (number(library, 32, 8)? as usize, number(library, 54, 2)? as usize);
    let headers: Vec<Header> = (0..number(library, 56, 2)? as usize)
        .map(|at| Header::read(library, table.checked_add(at * size)?))
        .collect::<Option<_>>()?;
    let dynamic = headers.iter().find(|header| header.kind == DYNAMIC)?;
    let entry = |tag: u64| {
        let entries = (0..dynamic.size / 16).map(|at| dynamic.offset.checked_add(at * 16));
        let mut entries = entries.map_while(|at| Some((number(library, at?, 8)?, number(library, at? + 8, 8)?)));
        entries.find(|(found, _)| *found == tag).map(|(_, value)| value as usize)
    };
    let address = entry(STRTAB)?.checked_add(entry(SONAME)?)?;
    let within = |header: &&Header| header.kind == LOAD && address.checked_sub(header.address) < Some(header.size);
    let segment = headers.iter().filter(|header| header.address <= address).find(within)?;
    let offset = segment.offset.checked_add(address - segment.address)?;
    let length = library.get(offset..)?.iter().position(|&byte| byte == 0)?;
    Some((offset, length))
}

/// A program header: what of it is needed.
struct Header {
    kind: u32,
    offset: usize,
    address: usize,
    size: usize,
}

impl Header {
    fn read(library: &[u8], at: usize) -> Option<Self> {
        let word = |offset: usize| Some(number(library, at.checked_add(offset)?, 8)? as usize);
        let kind = number(library, at, 4)? as u32;
        Some(Self { kind, offset: word(8)?, address: word(16)?, size: word(32)? })
    }
}

/// A little-endian number of this many bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// The library with another name, which must not be longer; an error if the file is no library with a name.
pub(super) fn rename(library: &[u8], name: &str) -> Result<Vec<u8>, String> {
    let (offset, length) = find(library).ok_or("not a 64-bit ELF library with a DT_SONAME")?;
    if name.len() > length {
        return Err(format!("its DT_SONAME has {length} characters, too few for {name}"));
    }
    let mut renamed = library.to_vec();
    let place = &mut renamed[offset..offset + length];
    place.fill(0);
    place[..name.len()].copy_from_slice(name.as_bytes());
    Ok(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver that cargo built.
    fn library() -> Vec<u8> {
        let test = std::env::current_exe().unwrap();
        std::fs::read(test.with_file_name("libvulkan_spelter.so")).unwrap()
    }

    fn name(library: &[u8]) -> Option<&str> {
        let (offset, length) = find(library)?;
        std::str::from_utf8(&library[offset..offset + length]).ok()
    }

    #[test]
    fn a_library_gets_another_name() {
        let library = library();
        assert_eq!(name(&library), Some("libvulkan_spelter.so"));
        let renamed = rename(&library, "libvulkan.so.1").unwrap();
        assert_eq!(name(&renamed), Some("libvulkan.so.1"));
        let differ: Vec<usize> = (0..library.len()).filter(|&at| library[at] != renamed[at]).collect();
        assert!(differ[differ.len() - 1] - differ[0] < "libvulkan_spelter.so".len(), "{differ:?}");
        assert!(rename(&library, "libvulkan_spelter.so.1").unwrap_err().contains("20 characters"));
    }

    #[test]
    fn what_is_no_library_has_no_name() {
        let library = library();
        for length in 0..4096 {
            assert_eq!(name(&library[..length]), None, "{length}");
        }
        // Damaged headers: no panic.
        let mut damaged = library;
        for at in 0..1024 {
            damaged[at] ^= 0xff;
            let _ = find(&damaged);
            damaged[at] ^= 0xff;
        }
    }
}
