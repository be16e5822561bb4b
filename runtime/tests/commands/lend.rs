//! Buffers that are lent to the driver's API.

use spelter::{Buffer, Context, Error, Lend, vk};

use crate::commands::{ADD, adds, context};

/// A driver's command buffer that copies the first lent buffer to the second one.
fn copies(context: &Context, lent: &[spelter::LentBuffer<'_>]) -> spelter_driver::CommandBuffer {
    let commands = context.device().create_command_pool().allocate();
    commands.begin(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE).unwrap();
    let region = vk::BufferCopy { src_offset: lent[0].offset, dst_offset: lent[1].offset, size: lent[1].bytes };
    commands.copy_buffer(lent[0].buffer, lent[1].buffer, &[region]).unwrap();
    commands.end().unwrap();
    commands
}

fn copy(context: &Context, from: &Buffer, to: &Buffer) -> Result<(), Error> {
    let loan = context.lend(&[Lend::read(from), Lend::write(to)])?;
    let commands = copies(context, &loan.buffers());
    loan.submit(&[&commands]).map(drop)
}

#[test]
fn commands_of_the_driver_are_in_order_with_others() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, a) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(1 << 14).unwrap());
    let b = context.buffer(1 << 14).build().unwrap();
    let add = adds(&context, &program, [&step, &a], 1);
    let sibling = context.sibling();
    for iteration in 1..50u32 {
        context.submit(&add).unwrap();
        copy(&context, &a, &b).unwrap();
        copy(&sibling, &b, &a).unwrap();
        sibling.dispatch(&program).bind(0, 0, &step).bind(0, 1, &a).groups([64, 1, 1]).unwrap();
        assert_eq!(context.read::<u32>(&b).unwrap(), [2 * iteration - 1; 1 << 12]);
        assert_eq!(context.read::<u32>(&a).unwrap(), [2 * iteration; 1 << 12]);
    }
}

#[test]
fn a_lent_buffer_keeps_its_storage_until_the_loan_ends() {
    let context = context();
    let (from, to) = (context.buffer_from(&[1u32; 256]).unwrap(), context.buffer(1024).build().unwrap());
    let used = context.buffer(1024).build().unwrap();
    context.copy(&from, 0, &used, 0, 1024).unwrap(); // in use
    let loan = context.lend(&[Lend::read(&from), Lend::write(&to)]).unwrap();
    let commands = copies(&context, &loan.buffers());
    context.invalidate(&from).unwrap();
    context.upload(&from, &[2u32; 256]).unwrap(); // staged: it comes before what is submitted later
    assert_eq!(from.generation(), 0);
    loan.submit(&[&commands]).unwrap();
    context.copy(&from, 0, &used, 0, 1024).unwrap(); // in use
    context.upload(&from, &[3u32; 256]).unwrap();
    assert_eq!(from.generation(), 1, "the loan is over");
    assert_eq!(context.read::<u32>(&to).unwrap(), [2; 256]);
    assert_eq!(context.read::<u32>(&from).unwrap(), [3; 256]);
}

#[test]
fn a_destroyed_buffer_ends_the_loan_with_an_error_and_its_storage_lives_as_long_as_it_runs() {
    let context = context();
    let from = context.buffer(1024).label("from").holding(&[1u32; 256]).unwrap();
    let to = context.buffer(1024).build().unwrap();
    copy(&context, &from, &to).unwrap();
    from.destroy(); // the submitted copy has it
    assert_eq!(context.read::<u32>(&to).unwrap(), [1; 256]);
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 1);
    let from = context.buffer(1024).label("from").zeroed().unwrap();
    let loan = context.lend(&[Lend::read(&from), Lend::write(&to)]).unwrap();
    let commands = copies(&context, &loan.buffers());
    from.destroy();
    assert_eq!(context.stats().objects_alive(), 2, "the loan keeps the storage");
    let error = loan.submit(&[&commands]).unwrap_err().to_string();
    assert_eq!(error, "submit: buffer `from` of 1024 bytes is destroyed (rule: a destroyed resource is not used)");
    assert_eq!((context.stats().objects_alive(), context.read::<u32>(&to).unwrap()), (1, vec![1; 256]));
}

#[test]
fn what_the_driver_rejects_does_not_run_and_the_context_goes_on() {
    let context = context();
    let (from, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer(4).build().unwrap());
    let other = context.buffer_zeroed(4).unwrap();
    context.fill(&other, 8).unwrap(); // recorded before: it runs
    let loan = context.lend(&[Lend::read(&from), Lend::write(&to)]).unwrap();
    let open = context.device().create_command_pool().allocate();
    open.begin(vk::CommandBufferUsageFlags::empty()).unwrap();
    let error = loan.submit(&[&open]).unwrap_err();
    assert!(matches!(&error, Error::Misuse(misuse) if misuse.vuid.ends_with("pCommandBuffers-00070")), "{error}");
    assert!(to.valid_ranges().is_empty(), "nothing was written");
    assert_eq!(context.read::<u32>(&other).unwrap(), [8]);
    copy(&context, &from, &to).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [1]);
}
