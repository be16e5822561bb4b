//! `spelter reflect`: what a shader needs from a host program: bindings, layouts, push constants, workgroup sizes,
//! specialization constants.

use serde_json::{Map, Value, json};
use spelter::{BindingKind, DataLayout, DataMember};
use spelter_shaders::check::{read_bindings, written_bindings};
use spelter_shaders::front::Blocks;
use spelter_shaders::ir::{BindingData, Kernel};

use crate::args::ReflectArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::shader;

/// The width of the column of names, at most. Lines with longer names are wider than the others.
const MAX_WIDTH: usize = 64;

/// Types and members that are listed for all entry points, at most: what one of them needs has a limit of its own.
const MAX_PARTS: usize = 1 << 17;

/// Prints the interface of one entry point, or of all.
pub(crate) fn run(args: &ReflectArgs, output: &mut Output) -> Result<(), Failure> {
    let shader = shader::load(&args.file)?;
    let module = shader.module()?;
    let entries: Vec<String> = match &args.entry {
        Some(entry) => {
            vec![spelter::choose_entry(module.entry_points(), Some(entry)).map_err(|error| shader.refused(error))?]
        }
        None => module.entry_points().map(str::to_owned).collect(),
    };
    if entries.is_empty() {
        return Err(shader.problem(shader::NOT_COMPUTE));
    }
    let (specialization, names) = (shader::specialization(&module, &args.spec)?, module.binding_names());
    let (mut interfaces, mut parts) = (Vec::new(), 0);
    for entry in &entries {
        let _room = shader.room_to_read()?;
        let kernel = module.kernel(entry, &specialization).map_err(|error| shader.refused(error))?;
        let mut blocks = module.blocks(entry, &specialization).map_err(|error| shader.refused(error))?;
        let used = kernel.bindings.values().map(|data| (data.set, data.binding));
        blocks.buffers.retain(|place, _| used.clone().any(|used| used == *place));
        parts += blocks.buffers.values().chain(&blocks.push).map(parts_of).sum::<usize>();
        if parts > MAX_PARTS {
            return Err(shader.problem("what all entry points need is too much for a list: choose one with --entry"));
        }
        interfaces.push(Interface { kernel, blocks, names: &names });
    }
    let constants: Vec<_> = module.specialization_constants();
    if args.json {
        return output.json(&json!({
            "file": args.file.display().to_string(),
            "entry_points": interfaces.iter().map(Interface::json).collect::<Vec<_>>(),
            "specialization_constants": constants.iter().map(|constant| json!({
                "id": constant.id, "name": constant.name, "type": constant.ty.to_string(),
            })).collect::<Vec<_>>(),
        }));
    }
    for (at, interface) in interfaces.iter().enumerate() {
        if at > 0 {
            output.line("")?;
        }
        interface.print(output)?;
    }
    for constant in &constants {
        output.line(format!("specialization constant {constant}"))?;
    }
    Ok(())
}

/// What an entry point needs.
struct Interface<'a> {
    kernel: Kernel,
    blocks: Blocks,
    /// Set, binding and name of variables.
    names: &'a [(u32, u32, String)],
}

impl Interface<'_> {
    fn bindings(&self) -> impl Iterator<Item = (Used<'_>, Option<&str>, Option<&DataLayout>)> {
        let (read, written) = (read_bindings(&self.kernel), written_bindings(&self.kernel));
        self.kernel.bindings.iter().map(move |(binding, data)| {
            let named = |(set, binding, _): &&(u32, u32, String)| (*set, *binding) == (data.set, data.binding);
            let name = self.names.iter().find(named).map(|(_, _, name)| name.as_str());
            let used = Used { data, reads: read.contains(binding), writes: written.contains(binding) };
            (used, name, self.blocks.buffers.get(&(data.set, data.binding)))
        })
    }

    /// The layout of the push constants, if the entry point uses them.
    fn push(&self) -> Option<&DataLayout> {
        self.blocks.push.as_ref().filter(|_| self.kernel.push_bytes > 0)
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let [x, y, z] = self.kernel.workgroup_size;
        output.line(format!("{}: workgroup {x}x{y}x{z}", output.strong(&self.kernel.name)))?;
        if self.kernel.push_bytes > 0 {
            output.line(format!("push constants: {} bytes", self.kernel.push_bytes))?;
            self.push().map_or(Ok(()), |layout| print(layout, output))?;
        }
        for (used, name, layout) in self.bindings() {
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            output.line(format!("{}.{}{name}: {}", used.data.set, used.data.binding, described(&used)))?;
            layout.map_or(Ok(()), |layout| print(layout, output))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let bindings = self.bindings().map(|(Used { data, reads, writes }, name, layout)| {
            json!({
                "set": data.set, "binding": data.binding, "name": name, "kind": data.kind.description(),
                "count": (data.count > 0).then_some(data.count), "read_only": is_read_only(data), "reads": reads,
                "writes": writes,
                "min_bytes": data.min_bytes, "element_bytes": (data.element_bytes > 0).then_some(data.element_bytes),
                "layout": layout.map(layout_json),
            })
        });
        json!({
            "name": self.kernel.name, "workgroup_size": self.kernel.workgroup_size,
            "bindings": bindings.collect::<Vec<_>>(),
            "push_constants": (self.kernel.push_bytes > 0).then(|| json!({
                "bytes": self.kernel.push_bytes, "layout": self.push().map(layout_json),
            })),
        })
    }
}

/// A binding, and what the entry point does with its memory.
struct Used<'a> {
    data: &'a BindingData,
    reads: bool,
    writes: bool,
}

impl Used<'_> {
    /// The accesses of a binding that shaders can write.
    fn accesses(&self) -> &'static str {
        match (self.reads, self.writes) {
            _ if self.data.read_only => "read only",
            (true, true) => "read and written",
            (false, true) => "only written",
            (true, false) => "only read",
            // Its size may be used.
            (false, false) => "neither read nor written",
        }
    }
}

fn is_read_only(data: &BindingData) -> bool {
    let writable = [BindingKind::StorageBuffer, BindingKind::StorageTexelBuffer, BindingKind::StorageImage];
    data.read_only || !writable.contains(&data.kind)
}

/// A binding in a line.
fn described(used: &Used<'_>) -> String {
    let data = used.data;
    let mut text = data.kind.description().to_owned();
    match data.count {
        0 => text.push_str(", an array without a size"),
        1 => {}
        count => text.push_str(&format!(", {count} elements")),
    }
    if [BindingKind::StorageBuffer, BindingKind::StorageTexelBuffer, BindingKind::StorageImage].contains(&data.kind) {
        text.push_str(", ");
        text.push_str(used.accesses());
    }
    if data.min_bytes > 0 {
        text.push_str(&format!(", {} bytes", data.min_bytes));
    }
    if data.element_bytes > 0 {
        let and = if data.min_bytes > 0 { " and" } else { "," };
        text.push_str(&format!("{and} {} bytes for each element", data.element_bytes));
    }
    text
}

/// Prints the members of a layout, one a line, with their offsets.
fn print(layout: &DataLayout, output: &mut Output) -> Result<(), Failure> {
    let mut rows = Vec::new();
    match layout {
        DataLayout::Struct { members, .. } => members.iter().for_each(|member| add(member, 0, 0, &mut rows)),
        layout => {
            rows.push((0, 0, String::new(), type_of(layout)));
            add_elements(layout, 0, &mut rows);
        }
    }
    let widths = rows.iter().map(|(_, depth, name, _)| 2 * depth + name.chars().count());
    let width = widths.max().unwrap_or(0).min(MAX_WIDTH);
    for (offset, depth, name, ty) in rows {
        let name = format!("{}{name}", "  ".repeat(depth));
        let gap = if width > 0 { "  " } else { "" };
        output.line(format!("{offset:>9}  {name:width$}{gap}{ty}"))?;
    }
    Ok(())
}

/// A line of a listing: offset from the start of the block or of an element, depth, name, type.
type Row = (u64, usize, String, String);

fn add(member: &DataMember, start: u64, depth: usize, rows: &mut Vec<Row>) {
    let offset = start + member.offset;
    rows.push((offset, depth, member.name.clone(), type_of(&member.layout)));
    match &member.layout {
        DataLayout::Struct { members, .. } => members.iter().for_each(|inner| add(inner, offset, depth + 1, rows)),
        layout => add_elements(layout, depth, rows),
    }
}

/// The number of types in a layout.
fn parts_of(layout: &DataLayout) -> usize {
    1 + match layout {
        DataLayout::Array { element, .. } => parts_of(element),
        DataLayout::Struct { members, .. } => members.iter().map(|member| parts_of(&member.layout)).sum(),
        _ => 0,
    }
}

/// The members of the structures in an array, from the start of an element.
fn add_elements(layout: &DataLayout, depth: usize, rows: &mut Vec<Row>) {
    if let DataLayout::Array { element, .. } = layout {
        match &**element {
            DataLayout::Struct { members, .. } => members.iter().for_each(|inner| add(inner, 0, depth + 1, rows)),
            element => add_elements(element, depth, rows),
        }
    }
}

/// The type, with the stride that it does not show.
fn type_of(layout: &DataLayout) -> String {
    match layout {
        DataLayout::Array { stride, .. } => format!("{layout}  stride {stride}"),
        DataLayout::Matrix { stride, row_major, .. } => {
            format!("{layout}  stride {stride}{}", if *row_major { ", row-major" } else { "" })
        }
        layout => layout.to_string(),
    }
}

/// A layout as JSON: the type as text, and what it consists of.
fn layout_json(layout: &DataLayout) -> Value {
    let mut object = Map::from_iter([("type".to_owned(), json!(layout.to_string()))]);
    match layout {
        DataLayout::Scalar(_) => {}
        DataLayout::Vector { stride, .. } => _ = object.insert("stride".into(), json!(stride)),
        DataLayout::Matrix { stride, row_major, .. } => {
            object.insert("stride".into(), json!(stride));
            object.insert("row_major".into(), json!(row_major));
        }
        DataLayout::Array { element, count, stride } => {
            object.insert("count".into(), json!(count));
            object.insert("stride".into(), json!(stride));
            object.insert("element".into(), layout_json(element));
        }
        DataLayout::Struct { members, .. } => {
            let members = members.iter().map(|member| {
                let mut inner = Map::from_iter([("name".to_owned(), json!(member.name))]);
                inner.insert("offset".into(), json!(member.offset));
                if let Value::Object(rest) = layout_json(&member.layout) {
                    inner.extend(rest);
                }
                Value::Object(inner)
            });
            object.insert("members".into(), members.collect());
        }
    }
    Value::Object(object)
}
