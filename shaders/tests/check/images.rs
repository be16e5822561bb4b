//! What is reported of image instructions: the texels that are read or written.

use spelter_shaders::abi::Outcome;
use spelter_shaders::back::{ObservedCode, Workgroups, interp::Program};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::{Descriptor, Extent, Filter, Format, Layout, Rows, Sampler, TexelView};

use crate::check::{Recorder, checked, machine_code, parse, with_images};

/// The offsets of the texels of an image of 4 × 4 floats that one invocation accesses; rows are 64 bytes apart.
#[track_caller]
fn texels(body: &str, filter: Filter) -> Vec<String> {
    let text = format!(
        "kernel \"test\" 1, 1, 1\nbinding0 = combined_image_sampler 0.0[1] 0\nblock0:
            v0 = const.i32 0\n v1 = const.i32 1\n v2 = const.i32 4\n v3 = const.f32 0.5\n v4 = const.f32 0.0
            v5 = buffer binding0[v0]\n {body}\n return"
    );
    let extent = Extent { size: [4, 4, 1], levels: 1, layers: 1 };
    let layout = Layout::new(&extent, 4, Rows::Packed).expect("it is small");
    let memory = GuestSlice::leak(layout.bytes as usize);
    let view = TexelView::of_image(memory, Format::R32_SFLOAT, &extent, &layout, [0, 1], [0, 1], false);
    let sampler = Sampler { mag: filter, min: filter, ..Sampler::DEFAULT };
    let kernel = checked(&parse(&text));
    let (buffers, images) = ([memory], [Descriptor { view, sampler }]);
    let observe = |code: &dyn ObservedCode| -> Vec<String> {
        let mut recorder = Recorder { buffers: vec![memory], events: Vec::new() };
        let outcome = with_images(&buffers, &images, [1; 3], |args, scratch| {
            code.run_observed(args, Workgroups::one([0; 3]), scratch, &mut recorder)
        });
        assert_eq!(outcome, Outcome::Done);
        assert_eq!(recorder.events.pop().map(|(_, event)| event).as_deref(), Some("ends"));
        recorder.events.into_iter().map(|(_, event)| event).collect()
    };
    let found = observe(&Program::new(&kernel));
    for (isa, program) in machine_code(&kernel) {
        assert_eq!(observe(&program.expect("it has machine code")), found, "{isa:?}");
    }
    found
}

#[test]
fn texels_are_reported_once_for_all_components() {
    let body = "v6 = image.read.2d.float.0 v5, v1, v1\n v7 = image.read.2d.float.1 v5, v1, v1\n \
                image.write.2d.float v5, v0, v1, v3, v3, v3, v3";
    assert_eq!(texels(body, Filter::Nearest), ["site0 buffer 0 68+4", "site1 buffer 0 64+4"]);
}

#[test]
fn texels_outside_the_image_are_not_reported() {
    let body = "v6 = image.read.2d.float.0 v5, v2, v1\n image.write.2d.float v5, v0, v2, v3, v3, v3, v3";
    assert_eq!(texels(body, Filter::Nearest), [""; 0]);
}

#[test]
fn samples_are_reported_with_all_texels_that_they_mix() {
    let body = "v6 = image.sample.2d.float.lod.0 v5, v5, v3, v3, v4";
    assert_eq!(texels(body, Filter::Nearest), ["site0 buffer 0 136+4"]);
    let four = ["site0 buffer 0 68+4", "site0 buffer 0 72+4", "site0 buffer 0 132+4", "site0 buffer 0 136+4"];
    assert_eq!(texels(body, Filter::Linear), four);
}
