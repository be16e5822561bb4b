//! A test file: a shader with its input and expected output in comments.
//!
//! | directive | meaning |
//! |---|---|
//! | `groups: 2,1,1` | workgroups; 1 if omitted |
//! | `entry: main` | entry point; the only one if omitted |
//! | `spec: 3=17 4=1.5 5=true` | specialization constants |
//! | `push: u32 1 f32 0.5` | push constants |
//! | `bind 0.1: u32 1,2,3` | contents of set 0, binding 1; `bind 0.1[2]:` of the array element 2 |
//! | `address 0.0@8: 0.1@16` | bytes 8 to 15 of binding 0.0 hold the address of byte 16 of 0.1; afterwards 0 |
//! | `expect 0.1: u32 2,4` | contents afterwards, from the start; `expect 0.1@64:` from byte 64 |
//! | `error: text` | the shader must be rejected with a message that contains this |
//!
//! [`crate::images`] documents declarations of images and samplers.
//!
//! Several lines for one `bind` or `expect` continue each other. [`crate::values`] documents lists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spelter_shaders::image::{Format, Sampler};

use crate::images::{self, ImageDecl};
use crate::values::{self, Word};

/// Which buffer: set, binding, array element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// `DescriptorSet`.
    pub set: u32,
    /// `Binding`.
    pub binding: u32,
    /// Element of the binding's array.
    pub element: u32,
}

/// One line of expected contents.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Line of the file, from 0.
    pub line: usize,
    /// Where.
    pub slot: Slot,
    /// Byte offset of the first word.
    pub offset: usize,
    /// The expected words.
    pub words: Vec<Word>,
}

/// A test file, read.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it is.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Workgroups.
    pub groups: [u32; 3],
    /// Entry point.
    pub entry: Option<String>,
    /// `SpecId` → bits.
    pub specialization: BTreeMap<u32, u64>,
    /// Push constants.
    pub push: Vec<Word>,
    /// Contents of buffers before.
    pub binds: BTreeMap<Slot, Vec<Word>>,
    /// Slots that are images.
    pub images: BTreeMap<Slot, ImageDecl>,
    /// Slots with a sampler.
    pub samplers: BTreeMap<Slot, Sampler>,
    /// Slots that are texel buffers.
    pub texels: BTreeMap<Slot, Format>,
    /// Addresses among the contents: the place, and the place whose address it is.
    pub addresses: Vec<[(Slot, usize); 2]>,
    /// Contents of buffers afterwards.
    pub expects: Vec<Expect>,
    /// Text of the expected error.
    pub error: Option<String>,
}

impl Case {
    /// Reads a file; errors name path and line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::parse(path, text)
    }

    /// As [`Case::read`], from a text.
    pub fn parse(path: &Path, text: String) -> Result<Self, String> {
        let mut case = Self {
            path: path.to_owned(),
            text: String::new(),
            groups: [1; 3],
            entry: None,
            specialization: BTreeMap::new(),
            push: Vec::new(),
            binds: BTreeMap::new(),
            images: BTreeMap::new(),
            samplers: BTreeMap::new(),
            texels: BTreeMap::new(),
            addresses: Vec::new(),
            expects: Vec::new(),
            error: None,
        };
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            let Some(comment) = line.strip_prefix("//").or_else(|| line.strip_prefix(';')) else { continue };
            case.directive(at, comment.trim()).map_err(|e| format!("{}:{}: {e}", path.display(), at + 1))?;
        }
        if case.expects.is_empty() && case.error.is_none() {
            return Err(format!("{}: neither `expect` nor `error`: it tests nothing", path.display()));
        }
        Ok(Self { text, ..case })
    }

    /// Whether the file is WGSL.
    pub fn is_wgsl(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "wgsl")
    }

    fn directive(&mut self, line: usize, comment: &str) -> Result<(), String> {
        let Some((key, value)) = comment.split_once(':') else { return Ok(()) };
        let value = value.trim();
        match key.split_once(' ').unwrap_or((key, "")) {
            ("groups", "") => self.groups = groups(value)?,
            ("entry", "") => self.entry = Some(value.to_owned()),
            ("spec", "") => {
                for pair in value.split_whitespace() {
                    let (id, value) = specialization(pair).ok_or_else(|| format!("`{pair}` is not ID=VALUE"))?;
                    self.specialization.insert(id, value);
                }
            }
            ("push", "") => self.push.extend(values::parse(value)?),
            ("bind", place) => {
                let (slot, 0) = place_of(place)? else { return Err("`bind` takes no offset".into()) };
                self.binds.entry(slot).or_default().extend(values::parse(value)?);
            }
            ("address", place) => self.addresses.push([place_of(place)?, place_of(value)?]),
            ("image", place) => _ = self.images.insert(place_of(place)?.0, ImageDecl::parse(value)?),
            ("sampler", place) => _ = self.samplers.insert(place_of(place)?.0, images::sampler(value)?),
            ("texels", place) => _ = self.texels.insert(place_of(place)?.0, images::format(value)?),
            ("expect", place) => {
                let (slot, mut offset) = place_of(place)?;
                if !place.contains('@') {
                    let before = self.expects.iter().filter(|expect| expect.slot == slot);
                    offset = before.map(|expect| expect.offset + 4 * expect.words.len()).next_back().unwrap_or(0);
                }
                self.expects.push(Expect { line, slot, offset, words: values::parse(value)? });
            }
            ("error", "") => self.error = Some(value.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

fn groups(text: &str) -> Result<[u32; 3], String> {
    let mut groups = [1; 3];
    for (at, part) in text.split(',').enumerate() {
        let group = groups.get_mut(at).ok_or("more than three dimensions")?;
        *group = part.trim().parse().map_err(|_| format!("`{part}` is not a number of workgroups"))?;
    }
    Ok(groups)
}

fn specialization(pair: &str) -> Option<(u32, u64)> {
    let (id, value) = pair.split_once('=')?;
    let bits = match value {
        "true" => 1,
        "false" => 0,
        _ if value.contains('.') => value.parse::<f32>().ok()?.to_bits().into(),
        _ if value.starts_with("0x") => u64::from_str_radix(&value[2..], 16).ok()?,
        _ => value.parse().or_else(|_| value.parse().map(i64::cast_unsigned)).ok()?,
    };
    Some((id.parse().ok()?, bits))
}

/// `0.1`, `0.1[2]`, `0.1@64`: slot and byte offset.
fn place_of(text: &str) -> Result<(Slot, usize), String> {
    let parse = || {
        let (rest, offset) = text.split_once('@').unwrap_or((text, "0"));
        let (rest, element) = rest.split_once('[').unwrap_or((rest, "0]"));
        let (set, binding) = rest.split_once('.')?;
        let element = element.strip_suffix(']')?.parse().ok()?;
        Some((Slot { set: set.parse().ok()?, binding: binding.parse().ok()?, element }, offset.parse().ok()?))
    };
    parse().ok_or_else(|| format!("`{text}` is not SET.BINDING, SET.BINDING[ELEMENT] or one with @OFFSET"))
}
