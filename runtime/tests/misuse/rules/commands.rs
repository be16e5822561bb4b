//! Command buffers and loans.

use spelter::{Bind, BindingKind, ClearColor, Lend, SetBinding, vk};

use super::{Case, DEVICE, GONE, INSIDE, KIND, MAPPED};

const CYCLE: &str = "(rule: a command buffer does not execute itself, directly or through others)";

pub(super) const CASES: &[Case] = &[
    (
        "a recorded dispatch has all its bindings",
        |s| s.context.record(|c| c.dispatch(&s.copy).bind(0, 0, &s.step).bind(0, 2, &s.to).groups([1, 1, 1])).map(drop),
        "binding 0.1 (source): no buffer is bound to it",
        "(VUID-vkCmdDispatch-None-08114)",
    ),
    (
        "a recorded program is of the device",
        |s| s.context.record(|c| c.dispatch(&s.theirs).groups([1, 1, 1])).map(drop),
        "dispatch: \"main\" is a program of another context's device",
        DEVICE,
    ),
    (
        "a recorded dispatch binds what its program declares",
        |s| {
            let record = |c: &mut spelter::Recorder| {
                let dispatch = c.dispatch(&s.copy).bind(0, 0, &s.step).bind(0, 1, &s.source).bind(0, 2, &s.to);
                dispatch.bind(3, 9, &s.source).groups([1, 1, 1])
            };
            s.context.record(record).map(drop)
        },
        "binding 3.9: buffer `source` of 64 bytes: \"main\" does not use it; it uses 0.0, 0.1, 0.2",
        "(rule: a dispatch binds only what its program declares)",
    ),
    (
        "a recorded buffer has the kind of its slot",
        |s| {
            s.context
                .record(|c| {
                    c.dispatch(&s.copy)
                        .with((0, 0), Bind::storage(&s.step))
                        .bind(0, 1, &s.source)
                        .bind(0, 2, &s.to)
                        .groups([1, 1, 1])
                })
                .map(drop)
        },
        "binding 0.0 (step): buffer `step` of 64 bytes is bound as a storage buffer, \"main\" takes a uniform buffer",
        KIND,
    ),
    (
        "push constants of a recorded dispatch are as many as declared",
        |s| s.context.record(|c| c.dispatch(&s.push).bind(0, 2, &s.to).groups([1, 1, 1])).map(drop),
        "push constants: \"main\" declares bytes 0..4, 0 bytes were given, bytes 0..4 are missing",
        "(VUID-vkCmdDispatch-maintenance4-08602)",
    ),
    (
        "recorded workgroups are within the limits",
        |s| s.context.record(|c| c.dispatch(&s.push).bind(0, 2, &s.to).push(&1u32).groups([70_000, 1, 1])).map(drop),
        "",
        "VUID-vkCmdDispatch-groupCountX-00386)",
    ),
    (
        "a recorded dispatch uses nothing that is destroyed",
        |s| s.context.record(|c| c.dispatch(&s.push).bind(0, 2, &s.gone).push(&1u32).groups([1, 1, 1])).map(drop),
        "binding 0.2 (to): buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a recorded dispatch uses nothing of another device",
        |s| s.context.record(|c| c.dispatch(&s.push).bind(0, 2, &s.foreign).push(&1u32).groups([1, 1, 1])).map(drop),
        "binding 0.2 (to): buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a recorded dispatch uses nothing that is mapped",
        |s| s.context.record(|c| c.dispatch(&s.push).bind(0, 2, &s.mapped).push(&1u32).groups([1, 1, 1])).map(drop),
        "binding 0.2 (to): buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "a recorded dispatch's set is of the device",
        |s| {
            let layout = [SetBinding::new(0, BindingKind::UniformBuffer)];
            let set = s.stranger.descriptor_set_of(&layout).label("theirs").updatable().build()?;
            s.context.record(|c| c.dispatch(&s.copy).set(0, &set).groups([1, 1, 1])).map(drop)
        },
        "dispatch: descriptor set `theirs` is of another context's device",
        DEVICE,
    ),
    (
        "a recorded dispatch's set is for a group of the program",
        |s| s.context.record(|c| c.dispatch(&s.copy).set(1, &s.set().build()?).groups([1, 1, 1])).map(drop),
        "dispatch: descriptor set `frame` for group 1: \"main\" has no bindings there",
        "(rule: a dispatch binds only what its program declares)",
    ),
    (
        "a recorded dispatch's set has what the program reads",
        |s| {
            let set = s.context.descriptor_set(&s.copy, 0).label("frame").bind(0, &s.step).updatable().build()?;
            s.context.record(|c| c.dispatch(&s.copy).set(0, &set).groups([1, 1, 1])).map(drop)
        },
        "binding 0.1 (source): descriptor set `frame`: no buffer is bound to it",
        "(VUID-vkCmdDispatch-None-08114)",
    ),
    (
        "counts lie in their buffer",
        |s| s.context.record(|c| c.dispatch(&s.push).bind(0, 2, &s.to).push(&1u32).indirect(&s.source, 56)).map(drop),
        "dispatch: bytes 56..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "counts begin at a whole word",
        |s| s.context.dispatch(&s.copy).indirect(&s.source, 2),
        "",
        "VUID-vkCmdDispatchIndirect-offset-02710)",
    ),
    (
        "counts of a recorded dispatch begin at a whole word",
        |s| s.context.record(|c| c.dispatch(&s.push).bind(0, 2, &s.to).push(&1u32).indirect(&s.source, 2)).map(drop),
        "",
        "VUID-vkCmdDispatchIndirect-offset-02710)",
    ),
    (
        "counts are not destroyed",
        |s| s.context.dispatch(&s.copy).indirect(&s.gone, 0),
        "dispatch: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "counts are of the device",
        |s| s.context.record(|c| c.dispatch(&s.push).bind(0, 2, &s.to).push(&1u32).indirect(&s.foreign, 0)).map(drop),
        "dispatch: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a recorded copy lies in its buffers",
        |s| s.context.record(|c| c.copy(&s.source, 4, &s.to, 0, 64)).map(drop),
        "copy: bytes 4..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a recorded copy does not overlap",
        |s| s.context.record(|c| c.copy(&s.source, 0, &s.source, 4, 8)).map(drop),
        "copy: bytes 0..8 to bytes 4..12 of buffer `source` of 64 bytes",
        "(rule: source and target of a copy do not overlap)",
    ),
    (
        "a recorded copy is of the device",
        |s| s.context.record(|c| c.copy(&s.source, 0, &s.foreign, 4, 8)).map(drop),
        "copy: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a recorded copy uses nothing that is mapped",
        |s| s.context.record(|c| c.copy(&s.mapped, 0, &s.to, 4, 8)).map(drop),
        "copy: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "a recorded fill has whole words",
        |s| s.context.record(|c| c.fill_range(&s.to, 2..8, 1)).map(drop),
        "fill: bytes 2..8 of buffer `to` of 64 bytes",
        "begin and end are multiples of 4)",
    ),
    (
        "a recorded fill lies in its buffer",
        |s| s.context.record(|c| c.group("late", |c| c.fill_range(&s.to, 60..68, 1))).map(drop),
        "fill: bytes 60..68 of buffer `to` of 64 bytes",
        INSIDE,
    ),
    (
        "a recorded fill has a target",
        |s| s.context.record(|c| c.fill(&s.gone, 1)).map(drop),
        "fill: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a recorded copy of levels has one size",
        |s| s.context.record(|c| c.copy_image((&s.sheet, 0, 0), (&s.drawn, 1, 0))).map(drop),
        "copy: from level 0 of layer 0, 4x4x1 texels, of image `sheet` of 4x4x1 R32_UINT to level 1 of layer 0",
        "(rule: source and target of a copy have the same size)",
    ),
    (
        "a recorded copy has levels",
        |s| s.context.record(|c| c.copy_image((&s.lost, 0, 0), (&s.drawn, 0, 0))).map(drop),
        "copy: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a recorded clear has a colour of the format",
        |s| s.context.record(|c| c.clear_image(&s.sheet, ClearColor::Float([1.0; 4]))).map(drop),
        "clear: image `sheet` of 4x4x1 R32_UINT holds unsigned integers, the colour is of floats",
        "(rule: a clear colour has the numeric type of the format, as for VkClearColorValue)",
    ),
    (
        "a recorded clear has levels",
        |s| s.context.record(|c| c.clear_image(s.sheet.level(7), ClearColor::Uint([1; 4]))).map(drop),
        "clear: ",
        INSIDE,
    ),
    (
        "a submitted command buffer is of the device",
        |s| s.context.submit(&s.stranger.record(|c| c.fill(&s.foreign, 0))?).map(drop),
        "submit: a command buffer of 1 command is of another context's device",
        DEVICE,
    ),
    (
        "an executed command buffer is of the device",
        |s| {
            let theirs = s.stranger.record(|c| c.fill(&s.foreign, 0))?;
            s.context.record(|c| c.execute(&theirs)).map(drop)
        },
        "execute: a command buffer of 1 command is of another context's device",
        DEVICE,
    ),
    (
        "a command buffer is recorded again on its device",
        |s| s.context.rerecord(&s.stranger.record(|_| Ok(()))?, |_| Ok(())),
        "record: a command buffer of 0 commands is of another context's device",
        DEVICE,
    ),
    (
        "a command buffer is not recorded while it is recorded",
        |s| {
            let commands = s.context.record(|_| Ok(()))?;
            s.context.rerecord(&commands, |_| s.context.rerecord(&commands, |_| Ok(())))
        },
        "record: a command buffer of 0 commands is being recorded",
        "(rule: a command buffer is recorded by one call at a time)",
    ),
    (
        "a command buffer does not execute itself",
        |s| {
            let commands = s.context.record(|c| c.fill(&s.to, 1))?;
            s.context.rerecord(&commands, |c| c.execute(&commands))
        },
        "execute: a command buffer of 1 command executes the one that is recorded",
        CYCLE,
    ),
    (
        "a command buffer does not execute itself through others",
        |s| {
            let inner = s.context.record(|c| c.fill(&s.to, 1))?;
            let middle = s.context.record(|c| c.execute(&inner))?;
            let outer = s.context.record(|c| c.execute(&middle))?;
            s.context.rerecord(&inner, |c| c.execute(&outer))
        },
        "execute: a command buffer of 0 commands executes the one that is recorded",
        CYCLE,
    ),
    (
        "a submission uses nothing that is destroyed",
        |s| {
            let late = s.context.buffer(16).label("late").zeroed()?;
            let commands = s.context.record(|c| c.copy(&s.source, 0, &late, 0, 16))?;
            let outer = s.context.record(|c| c.execute(&commands))?;
            late.destroy();
            s.context.submit(&outer).map(drop)
        },
        "submit: a command buffer: command 0, copy: buffer `late` of 16 bytes is destroyed",
        GONE,
    ),
    (
        "a lent range lies in its buffer",
        |s| s.context.lend(&[Lend::read(s.source.slice(60..68))]).map(drop),
        "lend: bytes 60..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a lent range is not empty",
        |s| s.context.lend(&[Lend::read(&s.to), Lend::read(s.source.slice(8..8))]).map(drop),
        "lend: no bytes of buffer `source` of 64 bytes",
        "(rule: a lent range is not empty)",
    ),
    (
        "a lent buffer is not destroyed",
        |s| s.context.lend(&[Lend::write(&s.gone)]).map(drop),
        "lend: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a lent buffer is of the device",
        |s| s.context.lend(&[Lend::write(&s.foreign)]).map(drop),
        "lend: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a lent buffer is not mapped",
        |s| s.context.lend(&[Lend::write(&s.mapped)]).map(drop),
        "lend: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "a lent buffer is not mapped until it is submitted",
        |s| {
            let buffer = s.context.buffer(16).label("late").zeroed()?;
            let loan = s.context.lend(&[Lend::write(&buffer)])?;
            let _map = s.context.map(&buffer, spelter::MapFlags::READ)?;
            loan.submit(&[]).map(drop)
        },
        "submit: buffer `late` of 16 bytes is mapped",
        MAPPED,
    ),
    (
        "command buffers of a loan are of the device",
        |s| {
            let commands = s.stranger.device().create_command_pool().allocate();
            commands.begin(vk::CommandBufferUsageFlags::empty())?;
            commands.end()?;
            s.context.lend(&[Lend::write(&s.to)])?.submit(&[&commands]).map(drop)
        },
        "",
        "VUID-vkQueueSubmit-pCommandBuffers-00074)",
    ),
    (
        "command buffers of a loan are executable",
        |s| {
            let commands = s.context.device().create_command_pool().allocate();
            s.context.lend(&[Lend::write(&s.to)])?.submit(&[&commands]).map(drop)
        },
        "",
        "VUID-vkQueueSubmit-pCommandBuffers-00070)",
    ),
];
