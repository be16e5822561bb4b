//! Programs as files: the kernel's text, with its dispatch and memory in the comments before it.
//!
//! ```text
//! ; what: avx2: wrong memory
//! ; groups: 2,1,1
//! ; base: 0,0,0
//! ; push 8: 3f800000 2
//! ; buffer 67 4: 0*16 7
//! kernel "random" 5, 1, 1
//! ```
//!
//! One `buffer` for each descriptor, in order: its size in bytes, the offset of its address from a multiple of 64, its
//! contents as hexadecimal 32-bit words, `*N` for N times. `texture N:` says that buffer N holds an image's texels,
//! with its format, size and sampler as hexadecimal numbers in the order of [`Texture::numbers`]. `addresses: N` says
//! that buffer N holds the addresses of all buffers, 8 bytes for each.

use spelter_shaders::ir::{Kernel, verify};

use super::program::{Buffer, Program};
use super::texture::Texture;

/// Writes a program; `what` describes the failure, in one or more lines.
pub fn write(program: &Program, what: &str) -> String {
    let mut text: String = what.lines().map(|line| format!("; what: {line}\n")).collect();
    let three = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
    text += &format!("; groups: {}\n; base: {}\n", three(program.groups), three(program.base));
    text += &format!("; push {}: {}\n", program.push.len(), words(&program.push));
    if let Some(number) = program.addresses {
        text += &format!("; addresses: {number}\n");
    }
    for buffer in &program.buffers {
        text += &format!("; buffer {} {}: {}\n", buffer.bytes.len(), buffer.lead, words(&buffer.bytes));
    }
    for texture in &program.textures {
        let numbers = texture.numbers().map(|number| format!(" {number:x}")).concat();
        text += &format!("; texture {}:{numbers}\n", texture.buffer);
    }
    text + &program.kernel.to_string()
}

fn words(bytes: &[u8]) -> String {
    let words = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    });
    let mut runs: Vec<(u32, usize)> = Vec::new();
    for word in words {
        match runs.last_mut() {
            Some((last, count)) if *last == word => *count += 1,
            _ => runs.push((word, 1)),
        }
    }
    let show = |&(word, count): &(u32, usize)| match count {
        1 => format!("{word:x}"),
        _ => format!("{word:x}*{count}"),
    };
    runs.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// Reads a program.
///
/// # Errors
///
/// The file is invalid; the error has the line if it is a comment.
pub fn read(text: &str) -> Result<Program, String> {
    let kernel = Kernel::parse(text).map_err(|error| error.to_string())?;
    verify(&kernel).map_err(|error| error.to_string())?;
    let mut program = Program {
        kernel,
        groups: [1; 3],
        base: [0; 3],
        push: Vec::new(),
        addresses: None,
        buffers: Vec::new(),
        textures: Vec::new(),
    };
    for (at, line) in text.lines().enumerate() {
        let Some(comment) = line.strip_prefix(';') else { continue };
        directive(&mut program, comment.trim()).map_err(|error| format!("line {}: {error}", at + 1))?;
    }
    let wanted: u32 = program.kernel.bindings.values().map(|data| data.count).sum();
    if program.buffers.len() != wanted as usize {
        return Err(format!("{} buffers for {wanted} descriptors", program.buffers.len()));
    }
    Ok(program)
}

fn directive(program: &mut Program, comment: &str) -> Result<(), String> {
    let Some((head, value)) = comment.split_once(':') else { return Ok(()) };
    let head: Vec<&str> = head.split_whitespace().collect();
    match head[..] {
        ["groups"] => program.groups = three(value)?,
        ["base"] => program.base = three(value)?,
        ["addresses"] => program.addresses = Some(number(value.trim())?),
        ["push", bytes] => program.push = contents(number(bytes)?, value)?,
        ["buffer", bytes, lead] => {
            let (lead, bytes) = (number(lead)? as u32, contents(number(bytes)?, value)?);
            program.buffers.push(Buffer { lead, bytes });
        }
        ["texture", buffer] => {
            let numbers: Result<Vec<u32>, _> =
                value.split_whitespace().map(|number| u32::from_str_radix(number, 16)).collect();
            let texture = numbers.ok().and_then(|numbers| Texture::from_numbers(number(buffer).ok()?, &numbers));
            program.textures.push(texture.ok_or_else(|| format!("`{value}` is no texture"))?);
        }
        _ => {}
    }
    Ok(())
}

/// Maximal bytes of a buffer in a file.
const MAX_BYTES: usize = 1 << 24;

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number <= MAX_BYTES).ok_or_else(|| format!("`{text}` is no number of bytes"))
}

fn three(text: &str) -> Result<[u32; 3], String> {
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    numbers.ok().and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| format!("`{text}` is not X,Y,Z"))
}

fn contents(bytes: usize, text: &str) -> Result<Vec<u8>, String> {
    let mut contents = Vec::new();
    for run in text.split_whitespace() {
        let (word, count) = run.split_once('*').unwrap_or((run, "1"));
        let word = u32::from_str_radix(word, 16).map_err(|_| format!("`{word}` is no word"))?;
        let count = number(count)?;
        contents.extend(std::iter::repeat_n(word.to_le_bytes(), count).flatten().take(MAX_BYTES - contents.len()));
    }
    if contents.len() != bytes.next_multiple_of(4) {
        return Err(format!("{} bytes of contents for {bytes}", contents.len()));
    }
    contents.truncate(bytes);
    Ok(contents)
}
