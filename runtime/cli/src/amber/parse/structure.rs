//! `STRUCT`.

use std::rc::Rc;

use super::Parser;
use crate::amber::Stop;
use crate::amber::text::SourcePosition;
use crate::amber::types::{Member, Struct, Type};

impl Parser<'_> {
    pub(super) fn structure(&mut self, at: SourcePosition) -> Result<(), Stop> {
        let name = self.cursor.expect("the structure's name")?;
        let stride = if self.cursor.take("STRIDE") { Some(self.cursor.integer("stride")?) } else { None };
        self.cursor.line_end()?;
        if self.structs.contains_key(name.text) {
            return Err(name.fail(format!("the type `{}` is already declared", name.text)));
        }
        let mut members: Vec<Member> = Vec::new();
        while let Some(word) = self.cursor.in_block("STRUCT", at)? {
            let ty = Type::parse(word.text, &self.structs);
            let ty = ty.ok_or_else(|| word.fail(format!("there is no type `{}`", word.text)))?;
            let member = self.member(ty)?;
            if members.iter().any(|other| other.name == member.name) {
                return Err(word.fail(format!("the member `{}` is already declared", member.name)));
            }
            members.push(member);
        }
        if members.is_empty() {
            return Err(name.fail("a structure without members"));
        }
        self.structs.insert(name.text.to_owned(), Rc::new(Struct { stride, members }));
        self.cursor.line_end()
    }

    /// A member, after its type.
    fn member(&mut self, ty: Type) -> Result<Member, Stop> {
        let name = self.cursor.expect("the member's name")?.text.to_owned();
        let (array, matrix) = match &ty {
            Type::Array(element, _) => (true, matches!(**element, Type::Matrix { .. })),
            other => (false, matches!(other, Type::Matrix { .. })),
        };
        let mut member = Member { name, ty, offset: None, array_stride: None, matrix_stride: None };
        while let Some(word) = self.cursor.word() {
            let to = match word.text {
                "OFFSET" => &mut member.offset,
                "ARRAY_STRIDE" if array => &mut member.array_stride,
                "MATRIX_STRIDE" if matrix => &mut member.matrix_stride,
                "ARRAY_STRIDE" | "MATRIX_STRIDE" => return Err(word.fail("the member's type has no such stride")),
                text => return Err(word.fail(format!("unexpected `{text}` in a member"))),
            };
            *to = Some(self.cursor.integer("number of bytes")?);
        }
        Ok(member)
    }
}
