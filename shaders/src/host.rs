//! Services of the host that kernels call: the clock and message printing.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of a message's operands, at most.
pub(crate) const MAX_MESSAGE_WORDS: u32 = 256;

/// Services of the host. The default clock always reads 0 and the default printer drops messages.
#[derive(Clone, Debug)]
pub struct Host {
    /// Monotonic ticks since an arbitrary time in the past (`OpReadClockKHR`).
    pub clock: fn() -> u64,
    /// Receives messages (`NonSemantic.DebugPrintf`).
    pub printer: Option<Printer>,
}

impl Default for Host {
    fn default() -> Self {
        Self { clock: || 0, printer: None }
    }
}

/// A message that an invocation printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// `GlobalInvocationId`.
    pub invocation: [u32; 3],
    /// The text with its operands formatted.
    pub text: String,
}

/// Prints a limited number of messages, then one text that says so, and drops the rest. A handle: two are equal if they
/// share the limit.
#[derive(Clone)]
pub struct Printer {
    inner: Arc<Inner>,
}

struct Inner {
    max: u64,
    /// Of what is printed: the messages, and that there are more.
    left: AtomicU64,
    print: Box<dyn Fn(&Printed) + Send + Sync>,
}

impl Printer {
    /// Calls `print`, on the threads that run kernels, for the first `max` messages of all kernels together, and once
    /// more with a text that says that further messages are not shown. If it panics, the device is lost.
    pub fn new(max: u64, print: impl Fn(&Printed) + Send + Sync + 'static) -> Self {
        Self { inner: Arc::new(Inner { max, left: AtomicU64::new(max.saturating_add(1)), print: Box::new(print) }) }
    }

    /// Prints a message unless the limit is reached.
    fn print(&self, message: &Message, invocation: [u32; 3], words: &[u32]) {
        let take = |left: u64| left.checked_sub(1);
        // Relaxed: a count that orders nothing.
        let text = match self.inner.left.fetch_update(Relaxed, Relaxed, take) {
            Err(_) => return,
            Ok(1) => format!("(only the first {} messages are shown)", self.inner.max),
            Ok(_) => message.fill(words),
        };
        (self.inner.print)(&Printed { invocation, text });
    }
}

impl fmt::Debug for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Printer({} left)", self.inner.left.load(Relaxed))
    }
}

impl PartialEq for Printer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Printer {}

impl Host {
    /// Prints a message of a kernel. Words: the three components of the invocation id, then the operands.
    pub(crate) fn print(&self, messages: &[Message], number: u32, words: &[u32]) {
        let (Some(printer), Some(message)) = (&self.printer, messages.get(number as usize)) else { return };
        if let [x, y, z, rest @ ..] = words {
            printer.print(message, [*x, *y, *z], rest);
        }
    }
}

/// A format string as of C's `printf`, with `%v3f` for vectors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// The format string.
    pub text: String,
    /// Types of its operands.
    pub operands: Vec<MessageOperand>,
}

/// An operand of a message: a number of components of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageOperand {
    /// `b`ool, `i`nteger or `f`loat.
    pub kind: ComponentKind,
    /// Bits of a component: 8 to 64. Half floats are passed as 32-bit floats.
    pub bits: u32,
    /// Components; 1 for a scalar.
    pub count: u32,
}

/// Type of an operand's components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComponentKind {
    /// 0 or 1.
    Bool,
    /// The conversion decides the signedness.
    Int,
    /// A double if it has 64 bits, else a float.
    Float,
}

impl MessageOperand {
    /// 32-bit words of a component.
    fn words(self) -> usize {
        if self.bits == 64 { 2 } else { 1 }
    }

    /// 32-bit words of all components.
    pub(crate) fn all_words(self) -> usize {
        self.words() * self.count as usize
    }

    /// The name in the text form: `i32`, `f32x3`.
    pub(crate) fn name(self) -> String {
        let kind = match self.kind {
            ComponentKind::Bool => 'b',
            ComponentKind::Int => 'i',
            ComponentKind::Float => 'f',
        };
        if self.count == 1 { format!("{kind}{}", self.bits) } else { format!("{kind}{}x{}", self.bits, self.count) }
    }

    /// The operand that [`MessageOperand::name`] names.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let kind = match name.as_bytes().first()? {
            b'b' => ComponentKind::Bool,
            b'i' => ComponentKind::Int,
            b'f' => ComponentKind::Float,
            _ => return None,
        };
        let (bits, count) = name[1..].split_once('x').unwrap_or((&name[1..], "1"));
        let (bits, count) = (bits.parse().ok()?, count.parse().ok()?);
        (matches!(bits, 8 | 16 | 32 | 64) && (1..=4).contains(&count)).then_some(Self { kind, bits, count })
    }
}

/// Exponent in C's notation: a sign and at least two digits.
fn with_exponent(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `%g`: `digits` significant digits in the shorter of fixed and exponential notation; trailing zeros of the fraction
/// only if `zeros`.
fn general(float: f64, digits: usize, zeros: bool) -> String {
    let digits = digits.max(1);
    let long = format!("{float:.0$e}", digits - 1);
    let exponent: i32 = long.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') && !zeros {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..digits as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).cast_unsigned() as usize;
        return without_zeros(&format!("{float:.decimals$}"));
    }
    let (mantissa, exponent) = long.split_once('e').unwrap_or((&long, "0"));
    with_exponent(&format!("{}e{exponent}", without_zeros(mantissa)))
}

/// `%a`: hexadecimal significand, binary exponent.
fn hexadecimal(float: f64) -> String {
    let bits = float.to_bits();
    let sign = if bits >> 63 == 1 { "-" } else { "" };
    let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    let (first, power) = match (exponent, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, exponent.cast_signed() - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x{first}{point}{digits}p{power:+}")
}

/// A conversion specification, such as `%-08.3v4lf`: flags, width, precision, components and the conversion.
#[derive(Default)]
struct FormatSpec {
    left: bool,
    zeros: bool,
    /// Prefix of non-negative numbers.
    plus: &'static str,
    /// `#`: keeps trailing zeros of the fraction.
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

/// Field width and precision, at most.
const MAX_WIDTH: usize = 256;

impl FormatSpec {
    /// Reads what follows `%`.
    fn read(text: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Self> {
        let mut spec = Self::default();
        while let Some(flag) = text.next_if(|c| "-0+ #".contains(*c)) {
            match flag {
                '-' => spec.left = true,
                '0' => spec.zeros = true,
                '+' => spec.plus = "+",
                ' ' if spec.plus.is_empty() => spec.plus = " ",
                '#' => spec.alternate = true,
                _ => {}
            }
        }
        let number = |text: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut number = None;
            while let Some(digit) = text.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10)) {
                number = Some((number.unwrap_or(0) * 10 + digit as usize).min(MAX_WIDTH));
            }
            number
        };
        spec.width = number(text).unwrap_or(0);
        if text.next_if_eq(&'.').is_some() {
            spec.precision = Some(number(text).unwrap_or(0));
        }
        if text.next_if_eq(&'v').is_some() {
            number(text);
        }
        while text.next_if(|c| "hlL".contains(*c)).is_some() {}
        spec.conversion = text.next()?;
        // OpenCL and GLSL allow `ul` as well as `lu`.
        if spec.conversion == 'u' && text.next_if_eq(&'l').is_some() {
            text.next_if(|c| "xuX".contains(*c)).into_iter().for_each(|c| spec.conversion = c);
        }
        Some(spec)
    }

    fn pad(&self, text: &str) -> String {
        match (self.left, self.zeros) {
            (true, _) => format!("{text:<0$}", self.width),
            (false, true) => {
                let (sign, digits) = if text.starts_with(['-', '+', ' ']) { text.split_at(1) } else { ("", text) };
                format!("{sign}{digits:0>0$}", self.width.saturating_sub(sign.len()))
            }
            (false, false) => format!("{text:>0$}", self.width),
        }
    }

    fn component(&self, operand: MessageOperand, bits: u64) -> String {
        let unused = 64 - operand.bits.clamp(1, 64);
        let signed = (bits << unused).cast_signed() >> unused;
        let float = if operand.bits == 64 { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() };
        let plus = self.plus;
        let precision = self.precision.unwrap_or(6);
        let text = match (operand.kind, self.conversion) {
            (ComponentKind::Float, 'e' | 'E' | 'a' | 'A') if float.is_finite() => {
                let text = if matches!(self.conversion, 'e' | 'E') {
                    with_exponent(&format!("{float:.precision$e}"))
                } else {
                    hexadecimal(float)
                };
                let text = if float.is_sign_negative() { text } else { format!("{plus}{text}") };
                if self.conversion.is_uppercase() { text.to_uppercase() } else { text }
            }
            (ComponentKind::Float, 'g' | 'G') if float.is_finite() => {
                let text = general(float, precision, self.alternate);
                let text = if float.is_sign_negative() { text } else { format!("{plus}{text}") };
                if self.conversion == 'G' { text.to_uppercase() } else { text }
            }
            (ComponentKind::Float, _) if float.is_nan() => String::from("nan"),
            (ComponentKind::Float, _) if !float.is_sign_negative() => format!("{plus}{float:.precision$}"),
            (ComponentKind::Float, _) => format!("{float:.precision$}"),
            (_, 'x') => format!("{bits:x}"),
            (_, 'X') => format!("{bits:X}"),
            (_, 'o') => format!("{bits:o}"),
            (_, 'c') => char::from(bits as u8).to_string(),
            (ComponentKind::Int, 'd' | 'i') if signed >= 0 => format!("{plus}{signed}"),
            (ComponentKind::Int, 'd' | 'i') => format!("{signed}"),
            _ => format!("{bits}"),
        };
        self.pad(&text)
    }
}

impl Message {
    /// The formatted text. A conversion specification without an operand is replaced with `%`.
    pub fn fill(&self, words: &[u32]) -> String {
        let mut result = String::new();
        let mut operands = self.operands.iter().copied();
        let mut words = words.iter().copied();
        let mut text = self.text.chars().peekable();
        while let Some(c) = text.next() {
            if c != '%' {
                result.push(c);
            } else if text.next_if_eq(&'%').is_some() {
                result.push('%');
            } else if let (Some(spec), Some(operand)) = (FormatSpec::read(&mut text), operands.next()) {
                for component in 0..operand.count {
                    let mut bits = u64::from(words.next().unwrap_or(0));
                    if operand.words() == 2 {
                        bits |= u64::from(words.next().unwrap_or(0)) << 32;
                    }
                    let between = if component > 0 { ", " } else { "" };
                    // Writing to a `String` cannot fail.
                    let _ = write!(result, "{between}{}", spec.component(operand, bits));
                }
            } else {
                result.push('%');
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_formatted_like_c_printf() {
        let fill = |text: &str, operands: &[(&str, &[u32])]| {
            let words: Vec<u32> = operands.iter().flat_map(|(_, words)| words.iter().copied()).collect();
            let operands = operands.iter().map(|(name, _)| MessageOperand::from_name(name).expect("a name")).collect();
            Message { text: text.into(), operands }.fill(&words)
        };
        assert_eq!(
            fill("%d %u %x%%", &[("i32", &[u32::MAX]), ("i32", &[u32::MAX]), ("i8", &[0xab])]),
            "-1 4294967295 ab%"
        );
        assert_eq!(
            fill("[%5d|%-5d|%05d|%+d]", &[("i16", &[7]), ("i32", &[7]), ("i8", &[0xf9]), ("i32", &[7])]),
            "[    7|7    |-0007|+7]"
        );
        assert_eq!(
            fill("%lu %ul %lx", &[("i64", &[1, 1]), ("i64", &[2, 0]), ("i64", &[0, 16])]),
            "4294967297 2 1000000000"
        );
        let three = [1.5f32, -2.0, 0.25].map(f32::to_bits);
        assert_eq!(
            fill("%v3f;%1.2v3f", &[("f32x3", &three), ("f32x3", &three)]),
            "1.500000, -2.000000, 0.250000;1.50, -2.00, 0.25"
        );
        let double = 0.1f64.to_bits();
        assert_eq!(
            fill("%g %f", &[("f64", &[double as u32, (double >> 32) as u32]), ("f16", &[three[2]])]),
            "0.1 0.250000"
        );
        let floats = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let g = |text: &str, value: f32| fill(text, &[("f32", &floats(&[value]))]);
        // What C prints.
        let general = [1e-4f32, 1e10, 1_234_567.0, 0.1, 100_000.0, 1.0 / 3.0, -0.0, 1e-7, f32::NAN, -f32::INFINITY];
        assert_eq!(
            general.map(|value| g("%g", value)).join(" "),
            "0.0001 1e+10 1.23457e+06 0.1 100000 0.333333 -0 1e-07 nan -inf"
        );
        assert_eq!(g("%.3g", 2.34567), "2.35");
        assert_eq!(g("%G", 1e-7), "1E-07");
        assert_eq!(g("%#g", 1.0), "1.00000");
        assert_eq!(g("% .0g|", 25.0), " 2e+01|");
        assert_eq!(fill("[% d]", &[("i32", &[7])]), "[ 7]");
        // Too few operands, and too many; a `%` at the end.
        assert_eq!(fill("%d %d", &[("i32", &[1])]), "1 %");
        assert_eq!(fill("%", &[("i32", &[1])]), "%");
        assert_eq!(fill("%99999999d", &[("i32", &[1])]).len(), MAX_WIDTH);
    }
}
