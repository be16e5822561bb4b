//! A call that breaks a rule returns an error with the resource's label, the slot and the rule, and the context still
//! works: a table with one line per rule.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod rules;

use std::sync::Arc;

use spelter::{
    Bind, Buffer, ClearColor, Context, DescriptorSetBuilder, Dispatch, Error, Image, MapFlags, Mapped, Program,
    SamplerInfo, Slot, vk,
};

use rules::{GONE, INSIDE, MAPPED, SOURCE, cases};

const COPY: &str = "
@group(0) @binding(0) var<uniform> step: vec4<u32>;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] = source[id.x] + step.x; }";

const LOOK: &str = "
@group(1) @binding(0) var sheet: texture_2d<u32>;
@group(1) @binding(1) var drawn: texture_storage_2d<r32uint, write>;
@compute @workgroup_size(1) fn main() { textureStore(drawn, vec2(0u), textureLoad(sheet, vec2(0u), 0)); }";

const PUSH: &str = "
var<immediate> n: u32;
@group(0) @binding(2) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(1) fn main() { to[0] = n; }";

/// Objects with which rules can be broken. All slots that the programs use are filled.
struct Stage {
    context: Context,
    stranger: Context,
    copy: Program,
    look: Program,
    push: Program,
    theirs: Program,
    step: Buffer,
    source: Buffer,
    to: Buffer,
    gone: Buffer,
    foreign: Buffer,
    mapped: Buffer,
    /// Keeps the first half of `mapped` mapped.
    map: Mapped,
    sheet: Image,
    drawn: Image,
    lost: Image,
}

impl Stage {
    fn new() -> Self {
        let (context, stranger) = (Context::builder().workers(1).build().unwrap(), Context::new().unwrap());
        let program = |text| context.program_wgsl(text).unwrap();
        let buffer = |label| context.buffer(64).label(label).holding(&[7u32; 16]).unwrap();
        let image = |label| {
            let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).levels(2).label(label).build().unwrap();
            context.clear_image(&image, ClearColor::Uint([7; 4])).unwrap();
            image
        };
        let (gone, lost, mapped) = (buffer("gone"), image("lost"), buffer("mapped"));
        gone.destroy();
        lost.destroy();
        let map = context.map(mapped.slice(..32), MapFlags::READ).unwrap();
        let stage = Self {
            copy: program(COPY),
            look: program(LOOK),
            push: program(PUSH),
            theirs: stranger.program_wgsl(COPY).unwrap(),
            step: buffer("step"),
            source: buffer("source"),
            to: buffer("to"),
            foreign: stranger.buffer(64).label("foreign").zeroed().unwrap(),
            sheet: image("sheet"),
            drawn: image("drawn"),
            gone,
            mapped,
            map,
            lost,
            context,
            stranger,
        };
        stage.context.bind((0, 0), Bind::uniform(&stage.step)).unwrap();
        stage.context.bind((0, 1), Bind::storage(&stage.source)).unwrap();
        stage.context.bind((0, 2), Bind::storage(&stage.to)).unwrap();
        stage.context.bind((1, 0), Bind::sampled(stage.sheet.level(0))).unwrap();
        stage.context.bind((1, 1), Bind::storage_image(stage.drawn.level(0))).unwrap();
        stage
    }

    fn bind(&self, slot: impl Into<Slot>, bind: Bind) -> Result<(), Error> {
        self.context.bind(slot, bind)
    }

    /// Dispatches with another binding for this dispatch only.
    fn with(&self, binding: u32, bind: Bind) -> Result<(), Error> {
        self.context.dispatch(&self.copy).with((0, binding), bind).groups([4, 1, 1])
    }

    /// A set for the program that copies, with all of its descriptors.
    fn set(&self) -> DescriptorSetBuilder<'_> {
        let set = self.context.descriptor_set(&self.copy, 0).label("frame");
        set.bind(0, &self.step).bind(1, &self.source).bind(2, &self.to)
    }

    /// Dispatches the program that copies with a set that is built here.
    fn with_set(&self, set: DescriptorSetBuilder<'_>) -> Result<(), Error> {
        self.context.dispatch(&self.copy).set(0, &set.build()?).groups([4, 1, 1])
    }

    /// As `with`, for the program that uses images.
    fn look(&self, binding: u32, bind: Bind) -> Result<(), Error> {
        self.context.dispatch(&self.look).with((1, binding), bind).groups([1, 1, 1])
    }

    /// Dispatches a program that samples floats with a sampler; the flags say whether program and sampler compare.
    fn sample(&self, [program, sampler]: [bool; 2]) -> Result<(), Error> {
        let (image, kind, call) = match program {
            true => ("texture_depth_2d", "sampler_comparison", "textureSampleCompareLevel(i, s, vec2(0.5), 0.5)"),
            false => ("texture_2d<f32>", "sampler", "textureSampleLevel(i, s, vec2(0.5), 0.0).x"),
        };
        let text = format!(
            "@group(0) @binding(0) var i: {image}; @group(0) @binding(1) var s: {kind};
            @group(0) @binding(2) var<storage, read_write> to: f32;
            @compute @workgroup_size(1) fn main() {{ to = {call}; }}"
        );
        let compare = sampler.then_some(vk::CompareOp::LESS);
        let sampler = self.context.sampler(&SamplerInfo { compare, ..SamplerInfo::default() })?;
        let image = self.context.image(vk::Format::R32_SFLOAT, [4, 4, 1]).build()?;
        let program = self.context.program_wgsl(&text)?;
        let dispatch = self.context.dispatch(&program).with((0, 0), Bind::sampled(&image));
        dispatch.with((0, 1), Bind::sampler(&sampler)).bind(0, 2, &self.to).groups([1, 1, 1])
    }

    fn map(&self, buffer: &Buffer, flags: MapFlags) -> Result<(), Error> {
        self.context.map(buffer, flags).map(drop)
    }

    /// Checks that the context still works: a dispatch of all slots, a transfer and a result.
    fn works(&self, after: &str) {
        let context = &self.context;
        context.fill(&self.to, 0).unwrap();
        context.dispatch(&self.copy).groups([4, 1, 1]).unwrap();
        assert_eq!(context.read::<u32>(&self.to).unwrap(), [14; 16], "after {after}");
        context.clear_image(&self.drawn, ClearColor::Uint([0; 4])).unwrap();
        context.dispatch(&self.look).groups([1, 1, 1]).unwrap();
        assert_eq!(context.read_image::<u32>(&self.drawn, 0, 0).unwrap()[..2], [7, 0], "after {after}");
    }
}

#[test]
fn each_rule_is_named_and_the_context_goes_on() {
    let stage = Stage::new();
    stage.works("nothing");
    for (what, run, start, end) in cases() {
        // A dispatch has all its errors: the first is that of the rule.
        let error = match run(&stage).expect_err(what) {
            Error::Several(errors) => errors[0].to_string(),
            error => error.to_string(),
        };
        assert!(error.starts_with(start), "{what}: {error:?} does not begin with {start:?}");
        assert!(error.ends_with(end), "{what}: {error:?} does not end with {end:?}");
        stage.works(what);
    }
    assert_eq!(stage.map.read::<u32>(0, 8).unwrap(), [7; 8], "the mapping is as it was");
    assert!(stage.stranger.read::<u32>(&stage.foreign).unwrap().iter().all(|word| *word == 0));
}

/// A binding may become invalid while it is in its slot.
#[test]
fn what_goes_wrong_in_a_slot_is_named_there() {
    let stage = Stage::new();
    let dispatch = || stage.context.dispatch(&stage.copy).groups([4, 1, 1]);
    stage.bind((0, 1), Bind::storage(&stage.mapped)).unwrap();
    let error = dispatch().unwrap_err().to_string();
    assert_eq!(error, format!("binding 0.1 (source): buffer `mapped` of 64 bytes is mapped {MAPPED}"));
    let late = stage.context.buffer(64).label("late").zeroed().unwrap();
    stage.bind((0, 1), Bind::storage(&late)).unwrap();
    dispatch().unwrap();
    late.destroy();
    let error = dispatch().unwrap_err().to_string();
    assert_eq!(error, format!("binding 0.1 (source): buffer `late` of 64 bytes is destroyed {GONE}"));
    stage.context.unbind((0, 1)).unwrap();
    assert_eq!(
        dispatch().unwrap_err().to_string(),
        "binding 0.1 (source): no buffer is bound to it (VUID-vkCmdDispatch-None-08114)"
    );
    // Of several empty slots all are named.
    stage.context.unbind((0, 0)).unwrap();
    assert_eq!(
        dispatch().unwrap_err().to_string(),
        "several errors:
  binding 0.0 (step): no buffer is bound to it (VUID-vkCmdDispatch-None-08114)
  binding 0.1 (source): no buffer is bound to it (VUID-vkCmdDispatch-None-08114)"
    );
    stage.bind((0, 0), Bind::uniform(&stage.step)).unwrap();
    stage.bind((0, 1), Bind::storage(&stage.source)).unwrap();
    stage.works("all of it");
}

/// A mapping that another thread made forbids commands of this context.
#[test]
fn a_map_of_another_thread_is_seen() {
    let stage = Arc::new(Stage::new());
    let other = Arc::clone(&stage);
    let map = std::thread::spawn(move || other.context.map(&other.source, MapFlags::READ).unwrap()).join().unwrap();
    let error = stage.context.dispatch(&stage.copy).groups([4, 1, 1]).unwrap_err().to_string();
    assert!(error.starts_with(&format!("binding 0.1 (source): {SOURCE} is mapped")), "{error}");
    map.unmap().unwrap();
    stage.works("the mapping");
}

/// A dispatch has all its errors in one, from a context and in a command buffer.
#[test]
fn a_dispatch_names_all_that_is_wrong() {
    let stage = Stage::new();
    let (context, wrong) = (&stage.context, Bind::uniform(&stage.to));
    let expected = format!(
        "several errors:
  push constants: dispatch `both`: \"main\" declares none, 4 bytes were given (VUID-vkCmdPushConstants-offset-01795)
  binding 7.0: dispatch `both`: {SOURCE}: \"main\" does not use it; it uses 0.0, 0.1, 0.2 \
         (rule: a dispatch binds only what its program declares)
  binding 0.1 (source): dispatch `both`: buffer `mapped` of 64 bytes is mapped {MAPPED}
  binding 0.2 (to): dispatch `both`: buffer `to` of 64 bytes is bound as a uniform buffer, \"main\" takes a storage buffer \
         (rule: a bound resource has the kind that the program declares)"
    );
    let broken = |dispatch: Dispatch<'_>| {
        let dispatch = dispatch.label("both").bind(0, 0, &stage.step).bind(0, 1, &stage.mapped);
        dispatch.with((0, 2), wrong.clone()).bind(7, 0, &stage.source).push(&1u32).groups([1, 1, 1])
    };
    let Err(Error::Several(errors)) = broken(context.dispatch(&stage.copy)) else { panic!("no errors") };
    assert_eq!(errors.len(), 4);
    assert_eq!(Error::Several(errors).to_string(), expected);
    stage.works("all errors");
    let mut recorded = None;
    let commands = context.record(|commands| {
        recorded = broken(commands.dispatch(&stage.copy)).err();
        Ok(())
    });
    assert_eq!(recorded.unwrap().to_string(), expected);
    context.submit(&commands.unwrap()).unwrap();
    stage.works("all errors of a recording");
}

/// The errors of the buffer with the counts are among those of its dispatch, with the label of the dispatch.
#[test]
fn an_indirect_dispatch_names_all_that_is_wrong() {
    let stage = Stage::new();
    let expected = format!(
        "several errors:
  dispatch `counted`: bytes 58..70 of buffer `gone` of 64 bytes {INSIDE}
  vkCmdDispatchIndirect: dispatch `counted`: offset 58 is not a multiple of 4 \
         (VUID-vkCmdDispatchIndirect-offset-02710)
  dispatch `counted`: buffer `gone` of 64 bytes is destroyed {GONE}
  binding 0.1 (source): dispatch `counted`: buffer `mapped` of 64 bytes is mapped {MAPPED}"
    );
    let broken = |dispatch: Dispatch<'_>| {
        let dispatch = dispatch.label("counted").bind(0, 0, &stage.step).bind(0, 1, &stage.mapped);
        dispatch.bind(0, 2, &stage.to).indirect(&stage.gone, 58).unwrap_err()
    };
    assert_eq!(broken(stage.context.dispatch(&stage.copy)).to_string(), expected);
    let mut recorded = None;
    let record = |commands: &mut spelter::Recorder| {
        recorded = Some(broken(commands.dispatch(&stage.copy)));
        Ok(())
    };
    stage.context.record(record).unwrap();
    assert_eq!(recorded.unwrap().to_string(), expected);
    // A single error has the label, too.
    let error = stage.context.dispatch(&stage.copy).label("odd").indirect(&stage.source, 2).unwrap_err();
    let of = "vkCmdDispatchIndirect: dispatch `odd`: offset 2 is not a multiple of 4";
    assert_eq!(error.to_string(), format!("{of} (VUID-vkCmdDispatchIndirect-offset-02710)"));
    stage.works("all errors of an indirect dispatch");
}
