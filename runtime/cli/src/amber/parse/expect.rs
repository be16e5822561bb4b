//! `EXPECT`, in all its forms.

use super::{Parser, find, number};
use crate::amber::Stop;
use crate::amber::number::Number;
use crate::amber::script::{Action, Comparator, ExpectBuffer, ExpectTexels, ExpectValues, Likeness, Tolerance};
use crate::amber::text::Word;

impl Parser<'_> {
    pub(super) fn expect(&mut self) -> Result<Action, Stop> {
        let name = self.cursor.expect("a buffer's name")?;
        let buffer = find(&self.names.buffers, "buffer", name)?;
        let form = self.cursor.expect("`IDX` or a comparison of buffers")?;
        match form.text {
            "IDX" => self.expect_at(buffer),
            "EQ_BUFFER" | "RMSE_BUFFER" | "EQ_HISTOGRAM_EMD_BUFFER" => self.expect_buffer(buffer, form),
            text => Err(form.fail(format!("expected `IDX` or a comparison of buffers, found `{text}`"))),
        }
    }

    /// `IDX x …` or `IDX x y SIZE …`.
    fn expect_at(&mut self, buffer: usize) -> Result<Action, Stop> {
        let offset = self.cursor.integer("index")?;
        let is_number = self.cursor.peek().is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_digit()));
        if is_number { self.expect_texels(buffer, offset) } else { self.expect_values(buffer, offset) }
    }

    fn expect_values(&mut self, buffer: usize, offset: u64) -> Result<Action, Stop> {
        let tolerances = if self.cursor.take("TOLERANCE") { self.tolerances(4)? } else { Vec::new() };
        let word = self.cursor.expect("a comparator")?;
        let comparator = match word.text {
            "EQ" => Comparator::Equal,
            "NE" => Comparator::NotEqual,
            "LT" => Comparator::Less,
            "LE" => Comparator::LessOrEqual,
            "GT" => Comparator::Greater,
            "GE" => Comparator::GreaterOrEqual,
            text => return Err(word.fail(format!("there is no comparator `{text}`"))),
        };
        if !tolerances.is_empty() && comparator != Comparator::Equal {
            return Err(word.fail("TOLERANCE goes with EQ only"));
        }
        let mut values = Vec::new();
        while let Some(word) = self.cursor.word() {
            let value = number(word)?;
            self.check_value(buffer, values.len(), value, word)?;
            values.push(value);
        }
        if values.is_empty() {
            return Err(word.fail("no values to compare with"));
        }
        Ok(Action::ExpectValues(ExpectValues { buffer, offset, comparator, values, tolerances }))
    }

    /// Checks that the scalar's type has the value, since otherwise the expectation can never hold.
    fn check_value(&self, buffer: usize, index: usize, value: Number, word: Word<'_>) -> Result<(), Stop> {
        let Some((_, scalar)) = self.script.buffers[buffer].layout.slot(index) else { return Ok(()) };
        scalar.encode(value).map(|_| ()).map_err(|problem| word.fail(problem))
    }

    fn expect_texels(&mut self, buffer: usize, x: u64) -> Result<Action, Stop> {
        let place = self.cursor.place();
        let x = u32::try_from(x).map_err(|_| place.fail(format!("there is no column {x}")))?;
        let origin = [x, self.cursor.integer("row")?];
        self.cursor.keyword("SIZE")?;
        let size = [self.cursor.integer("width")?, self.cursor.integer("height")?];
        if size.contains(&0) {
            return Err(place.fail("a rectangle without texels"));
        }
        let word = self.cursor.expect("`EQ_RGB` or `EQ_RGBA`")?;
        let channels = match word.text {
            "EQ_RGB" => 3,
            "EQ_RGBA" => 4,
            text => return Err(word.fail(format!("there is no comparator `{text}` of colours"))),
        };
        let color = (0..channels).map(|_| self.cursor.integer("value from 0 to 255")).collect::<Result<_, _>>()?;
        let tolerances = if self.cursor.take("TOLERANCE") { self.tolerances(channels)? } else { Vec::new() };
        Ok(Action::ExpectTexels(ExpectTexels { buffer, origin, size, color, tolerances }))
    }

    fn expect_buffer(&mut self, left: usize, form: Word<'_>) -> Result<Action, Stop> {
        let name = self.cursor.expect("a buffer's name")?;
        let right = find(&self.names.buffers, "buffer", name)?;
        let (a, b) = (&self.script.buffers[left], &self.script.buffers[right]);
        if a.ty != b.ty || a.layout != b.layout {
            return Err(name.fail(format!("`{}` and `{}` differ in data type", a.name, b.name)));
        }
        if a.count != b.count || a.image.size != b.image.size {
            let sizes = format!("{} and {} elements", a.count, b.count);
            return Err(name.fail(format!("`{}` and `{}` differ in size: {sizes}", a.name, b.name)));
        }
        let likeness = if form.text == "EQ_BUFFER" {
            Likeness::Equal
        } else {
            self.cursor.keyword("TOLERANCE")?;
            let tolerance = self.number("a tolerance")?.real();
            if form.text == "RMSE_BUFFER" {
                Likeness::RootMeanSquare(tolerance)
            } else {
                Likeness::EarthMover(tolerance)
            }
        };
        Ok(Action::ExpectBuffer(ExpectBuffer { left, right, likeness }))
    }

    /// One or more tolerances, up to a word that is not a number. `5%` and `5 %` are percentages.
    fn tolerances(&mut self, max: usize) -> Result<Vec<Tolerance>, Stop> {
        let mut tolerances = Vec::new();
        while let Some(word) = self.cursor.peek() {
            let digits = word.text.strip_suffix('%');
            let Some(value) = Number::parse(digits.unwrap_or(word.text)) else { break };
            self.cursor.word();
            if tolerances.len() == max {
                return Err(word.fail(format!("more than {max} tolerances")));
            }
            let percent = digits.is_some() || self.cursor.take("%");
            tolerances.push(Tolerance { value: value.real(), percent });
        }
        if tolerances.is_empty() {
            return Err(self.cursor.place().fail("TOLERANCE without a number"));
        }
        Ok(tolerances)
    }
}
