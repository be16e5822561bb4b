//! Calls the generated function.
//!
//! # Safety
//!
//! Machine code is trusted as far as the compiler is: it was generated from a kernel that the SIMD form's verifier
//! accepts.
//! What it may access, and why that is sound:
//!
//! - *The context* lives on this function's stack for the duration of the call. The code writes only the workgroup
//!   number, which is a cell; it reads everything else.
//! - *Guest memory*: inside the slices of the context only. Every access is checked against a slice's length or is in
//!   bounds by the verifier's rules. The slices are mapped by the contract of [`GuestSlice::new`]; the code accesses
//!   them by machine loads and stores, which may race just as the atomics of `guest.rs` may.
//! - *Push constants*: read only, inside their array. *The stop flag*: read only, by a machine load equivalent to a
//!   relaxed atomic.
//! - *Scratch memory* for shared memory, private memory and frames: as many bytes as the kernel declares, borrowed
//!   mutably for the call. Accesses to shared and private memory whose index is in range by construction are not
//!   checked; the verifier does not prove that. An index reloaded from a frame was stored before that same barrier: a
//!   workgroup whose subgroups reach different barriers is terminated (`subgroup_loop/`). The number of a subgroup is
//!   in range also where it is read from the order of a schedule, which has each number below the count once.
//! - *The stack*: the code's own frame. A frame smaller than a page is below the caller's frame; a larger one is at the
//!   upper end of the worker's stack, which has room for it (`stack.rs`) and is borrowed mutably for the call. The code
//!   saves the caller's stack pointer in that frame and restores it for calls and for the return.
//! - *Routines* are calls back into the functions of `routines!`, with the context as passed in and rows of words
//!   inside the scratch memory reserved for them. Before the call the code has moved all live values into callee-saved
//!   registers or onto its stack, which is aligned as the calling convention requires. A panic does not unwind through
//!   generated code: it is stored in the context, the code returns, and `run` resumes the panic.
//! - *Registers*: the caller-saved ones of `extern "C"`, which is System V's convention where machine code is used.
//!   MXCSR is changed only if it differs from the required mode, and only during the call.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Isa;
use super::function::{KernelFunction, Needs, STATE_BYTES};
use super::observe::{Monitor, Resources};
use crate::abi::{self, DispatchArgs, MAX_PUSH_BYTES, Outcome};
use crate::back::{Scratch, Workgroups, grow};
use crate::check::InlineChecks;
use crate::check::inline::state;
use crate::check::observer::Observer;
use crate::guest::GuestSlice;
use crate::host::{Host, Message};
use crate::image::{Descriptor, lanes};
use crate::schedule::Schedule;
use crate::simd::Routine;

/// The argument of the generated function, read by field offset.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Context<'a, 'o> {
    pub buffers: *const GuestSlice,
    pub push: *const [u8; MAX_PUSH_BYTES],
    pub stop: *const AtomicU32,
    pub shared: *mut u64,
    pub private: *mut u64,
    pub frames: *mut u64,
    pub calls: *mut u64,
    /// The order of subgroups and that of lanes, for code that takes them.
    pub subgroup_order: *mut u64,
    pub lane_order: *mut u64,
    /// The upper end of the worker's stack, for code with a large frame.
    pub stack: *mut u8,
    pub images: *const Descriptor,
    pub call: unsafe extern "C" fn(&Context<'_, '_>, *mut [u32; 16], u32) -> u32,
    pub image_count: usize,
    pub buffer_count: usize,
    pub num_workgroups: [u32; 3],
    /// The current workgroup: the workgroup loop of the code increments x.
    pub workgroup: [Cell<u32>; 3],
    /// The x after the last workgroup of the row.
    pub row_end: u32,
    function: &'a KernelFunction,
    host: &'a Host,
    /// The payload of a routine's panic.
    panic: RefCell<Option<Box<dyn Any + Send>>>,
    /// The observer of a kernel with checks; without one its calls do nothing.
    monitor: Option<&'a RefCell<Monitor<'o>>>,
}

/// The lanes in the order in which they act.
pub(super) type LaneOrder = [u32; abi::SUBGROUP_SIZE as usize];

/// Byte offsets of [`Context`]'s fields.
pub(super) mod offset {
    use super::{Context, offset_of};
    pub(in super::super) const BUFFERS: i32 = offset_of!(Context, buffers) as i32;
    pub(in super::super) const PUSH: i32 = offset_of!(Context, push) as i32;
    pub(in super::super) const STOP: i32 = offset_of!(Context, stop) as i32;
    pub(in super::super) const SHARED: i32 = offset_of!(Context, shared) as i32;
    pub(in super::super) const PRIVATE: i32 = offset_of!(Context, private) as i32;
    pub(in super::super) const FRAMES: i32 = offset_of!(Context, frames) as i32;
    pub(in super::super) const CALLS: i32 = offset_of!(Context, calls) as i32;
    pub(in super::super) const SUBGROUP_ORDER: i32 = offset_of!(Context, subgroup_order) as i32;
    pub(in super::super) const LANE_ORDER: i32 = offset_of!(Context, lane_order) as i32;
    pub(in super::super) const STACK: i32 = offset_of!(Context, stack) as i32;
    pub(in super::super) const IMAGES: i32 = offset_of!(Context, images) as i32;
    pub(in super::super) const CALL: i32 = offset_of!(Context, call) as i32;
    pub(in super::super) const BUFFER_COUNT: i32 = offset_of!(Context, buffer_count) as i32;
    pub(in super::super) const NUM_WORKGROUPS: i32 = offset_of!(Context, num_workgroups) as i32;
    pub(in super::super) const WORKGROUP: i32 = offset_of!(Context, workgroup) as i32;
    pub(in super::super) const ROW_END: i32 = offset_of!(Context, row_end) as i32;
}

impl KernelFunction {
    /// Runs the code once per run of workgroups, or once per workgroup if there is an observer. Resumes the panic of a
    /// routine.
    #[inline]
    pub(super) fn run(
        &self,
        args: &DispatchArgs<'_>,
        workgroups: &mut Workgroups,
        observer: Option<&mut dyn Observer>,
        Scratch { words, stack, host, stopped }: &mut Scratch,
    ) -> Outcome {
        let (needs, areas, descriptors) = (&self.needs, &self.areas, self.descriptors());
        // The code reads the slices of all descriptors that it names; the caller may have passed fewer.
        let padded;
        let mut buffers = args.buffers;
        let min = descriptors.max(usize::from(needs.address_ranges));
        if buffers.len() < min {
            padded = padded_to(buffers, min, GuestSlice::EMPTY);
            buffers = &padded;
        }
        // Sub-word values are extracted from aligned words.
        let copy;
        let mut push: *const [u8; MAX_PUSH_BYTES] = args.push;
        if !push.addr().is_multiple_of(4) {
            copy = Aligned(*args.push);
            push = &copy.0;
        }
        let padded_images;
        let mut images = args.images;
        if needs.images && images.len() < descriptors {
            padded_images = padded_to(images, descriptors, Descriptor::NULL);
            images = &padded_images;
        }
        let Some(scratch) = aligned(words, areas.bytes) else { return Outcome::OutOfMemory };
        let area = |offset| scratch.wrapping_byte_add(offset);
        let stack = match needs.stack_bytes {
            0 => std::ptr::null_mut(),
            bytes => match stack.top(bytes) {
                Ok(top) => top,
                Err(_) => return Outcome::OutOfMemory,
            },
        };
        let mut context = Context {
            buffers: buffers.as_ptr(),
            push,
            stop: args.stop,
            shared: area(areas.shared),
            private: area(areas.private),
            frames: area(areas.frames),
            calls: area(areas.calls),
            subgroup_order: area(areas.subgroup_order),
            lane_order: area(areas.lane_order),
            stack,
            images: images.as_ptr(),
            call: match needs.isa {
                Isa::Avx512 => call_avx512,
                Isa::Avx2 => call_avx2,
            },
            image_count: images.len(),
            buffer_count: buffers.len(),
            num_workgroups: args.num_workgroups,
            workgroup: [const { Cell::new(0) }; 3],
            row_end: 0,
            function: self,
            host,
            panic: RefCell::new(None),
            monitor: None,
        };
        if self.inline.is_empty() && observer.is_none() {
            return self.execute(&mut context, workgroups, (args.stop, stopped));
        }
        self.run_checked(args, (buffers, context), (workgroups, observer), area(areas.state), stopped)
    }

    /// Runs a kernel with checks. Apart, since most dispatches have none.
    #[cold]
    fn run_checked<'a, 'o>(
        &'a self,
        args: &DispatchArgs<'_>,
        (buffers, context): (&[GuestSlice], Context<'a, 'o>),
        (workgroups, mut observer): (&mut Workgroups, Option<&'o mut dyn Observer>),
        state: *mut u64,
        stopped: &mut Option<abi::Stop>,
    ) -> Outcome {
        let mut settles = false;
        let mut slices = buffers;
        let with_planes;
        if !self.inline.is_empty() {
            let named = (buffers, self.descriptors());
            (settles, with_planes) = with_planes_of(&self.inline, args.buffers, named, state, &mut observer);
            slices = &with_planes;
        }
        let invocations = self.needs.workgroup_size.iter().product();
        let monitor = observer.map(|observer| RefCell::new(Monitor::new(observer, invocations, settles)));
        let (buffers, buffer_count) = (slices.as_ptr(), slices.len());
        let mut context = Context { buffers, buffer_count, monitor: monitor.as_ref(), ..context };
        self.execute(&mut context, workgroups, (args.stop, stopped))
    }

    /// Calls the code for each run of workgroups.
    #[inline]
    fn execute(
        &self,
        context: &mut Context<'_, '_>,
        workgroups: &mut Workgroups,
        (flag, stopped): (&AtomicU32, &mut Option<abi::Stop>),
    ) -> Outcome {
        let needs = &self.needs;
        let takes_schedule = needs.subgroup_order > 0;
        let schedule = workgroups.schedule();
        // Each workgroup has orders of its own.
        let max = if needs.workgroup_loop && !takes_schedule && context.monitor.is_none() { u32::MAX } else { 1 };
        while let Some((first, count)) = workgroups.next_row(max) {
            if takes_schedule {
                write_orders(context, needs, schedule, first);
            }
            context.workgroup = first.map(Cell::new);
            context.row_end = first[0].wrapping_add(count);
            if let Some(monitor) = context.monitor {
                let schedule = if takes_schedule { schedule } else { Schedule::Ascending };
                begin_observed(monitor, workgroups, schedule, first);
            }
            let result = self.call(context);
            if result != DONE {
                *stopped = stop(result, needs, context.workgroup.each_ref().map(Cell::get));
                let panic = context.panic.take();
                return panic.map_or(Outcome::Stopped, |panic| resume_unwind(panic));
            }
            if let Some(monitor) = context.monitor {
                monitor.borrow_mut().end();
            }
            // The code polls the flag in long loops and between workgroups. Relaxed: the flag orders no other memory.
            if flag.load(Ordering::Relaxed) != 0 && !workgroups.is_empty() {
                *stopped = None;
                return Outcome::Stopped;
            }
        }
        Outcome::Done
    }

    fn call(&self, context: &Context<'_, '_>) -> u64 {
        type Entry = unsafe extern "C" fn(&Context<'_, '_>) -> u64;
        let address = self.memory.bytes()[self.entry..].as_ptr();
        // SAFETY: the code generator put a function of this type there, and the pages are executable and mapped while
        // the memory is borrowed.
        let function = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
        // SAFETY: the function keeps to the rules at the top of this file, and the context is what it expects.
        unsafe { function(context) }
    }
}

/// Writes the orders of a workgroup. Not inlined: the compiler would mix the seeds before the loop, also for dispatches
/// without a schedule.
#[inline(never)]
fn write_orders(context: &Context<'_, '_>, needs: &Needs, schedule: Schedule, workgroup: [u32; 3]) {
    let order = schedule.subgroups(workgroup, needs.subgroup_order as u32);
    let subgroups = (0..needs.subgroup_order).map(|position| order.at(position as u64) as u32);
    write_order(context.subgroup_order, subgroups);
    write_order(context.lane_order, schedule.lanes(workgroup).into_iter());
}

/// Tells the observer that a workgroup begins. Not inlined, as [`write_orders`].
#[inline(never)]
fn begin_observed(monitor: &RefCell<Monitor<'_>>, workgroups: &Workgroups, schedule: Schedule, workgroup: [u32; 3]) {
    monitor.borrow_mut().begin(workgroups.number_of(workgroup), schedule.lanes(workgroup));
}

/// The state with which no access is settled, in its area.
fn nothing_settled(area: *mut u64) -> GuestSlice {
    // SAFETY: `Areas` made room for this many bytes in the scratch memory that `run` borrows, for no other user. The
    // slice is used by the code that `run` calls.
    let state = unsafe { GuestSlice::new(area.cast(), STATE_BYTES as u64) };
    state.fill(0, STATE_BYTES as u64, 0);
    state::NOTHING_SETTLED.iter().for_each(|&(word, value)| state.store_u32(4 * u64::from(word), value));
    state
}

/// The slices of a kernel that settles accesses itself: its descriptors, the planes that the observer offers, and the
/// state. Whether it offers some.
#[cold]
fn with_planes_of(
    inline: &InlineChecks,
    bound: &[GuestSlice],
    (buffers, descriptors): (&[GuestSlice], usize),
    state: *mut u64,
    observer: &mut Option<&mut dyn Observer>,
) -> (bool, Vec<GuestSlice>) {
    let missing = std::iter::repeat(GuestSlice::EMPTY);
    let mut slices: Vec<_> = buffers.iter().copied().chain(missing).take(descriptors).collect();
    let offered = observer.as_mut().and_then(|observer| observer.inline(inline, bound));
    let settles = offered.is_some();
    match offered {
        Some(memory) => slices.extend(memory.slices()),
        None => {
            slices.extend(std::iter::repeat_n(GuestSlice::EMPTY, inline.slices() as usize - 1));
            slices.push(nothing_settled(state));
        }
    }
    (settles, slices)
}

/// A copy of `slices` with `more` added up to this length. Apart, since few dispatches need it.
#[cold]
fn padded_to<T: Clone>(slices: &[T], length: usize, more: T) -> Vec<T> {
    let mut padded = slices.to_vec();
    padded.resize(length, more);
    padded
}

/// Push constants at a word-aligned address.
#[repr(C, align(4))]
struct Aligned([u8; MAX_PUSH_BYTES]);

/// So many bytes in `words`, aligned to a cache line; `None` if the allocation fails.
#[inline]
fn aligned(words: &mut Vec<u64>, bytes: usize) -> Option<*mut u64> {
    const LINE: usize = 8;
    let needed = bytes / size_of::<u64>() + LINE;
    if words.len() < needed {
        grow(words, needed)?;
    }
    let first = words.as_mut_ptr();
    Some(first.wrapping_byte_add(first.addr().wrapping_neg() % 64))
}

/// Writes the words of an order to its area, which has room for them.
fn write_order(area: *mut u64, numbers: impl Iterator<Item = u32>) {
    for (position, number) in numbers.enumerate() {
        let word = area.cast::<u32>().wrapping_add(position);
        // SAFETY: `Areas` made room for as many words as the order has, in the scratch memory that `run` borrows.
        unsafe { word.write(number) };
    }
}

/// Defines the function that generated code calls for a routine, with rows of operands and space for results. It may
/// use the instruction set that the generated code itself requires. It returns 0, or 1 after a panic, on which the code
/// returns immediately.
macro_rules! routines {
    ($name:ident, $features:literal) => {
        /// # Safety
        ///
        /// Called by generated code only: `context` is the code's own argument, `rows` has as many rows as the routine
        /// and is not aliased, and the machine supports the instructions.
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))]
        unsafe extern "C" fn $name(context: &Context<'_, '_>, rows: *mut [u32; 16], routine: u32) -> u32 {
            // Unwind safety: state after a panic is the responsibility of the code that finally catches it.
            let result = catch_unwind(AssertUnwindSafe(|| {
                // SAFETY: `run` made both from slices that live as long as the call of the code does.
                let images = unsafe { std::slice::from_raw_parts(context.images, context.image_count) };
                // SAFETY: likewise.
                let buffers = unsafe { std::slice::from_raw_parts(context.buffers, context.buffer_count) };
                let Some(routine) = context.function.routines.get(routine as usize) else { return };
                // SAFETY: the kernel's call rows have room for each of its routines (the SIMD form's verifier), and
                // `Areas` gave them to no other user.
                let rows = unsafe { std::slice::from_raw_parts_mut(rows, routine.rows() as usize) };
                match routine {
                    Routine::Image(op) => lanes::run(op, images, rows),
                    Routine::BufferAt => buffers_at(buffers, context.function.descriptors(), rows),
                    Routine::Clock => tell_time(context.host, rows),
                    Routine::Print { message, .. } => print(context.host, &context.function.messages, *message, rows),
                    Routine::Check(check) => {
                        if let Some(monitor) = context.monitor {
                            let resources = Resources { buffers, descriptors: context.function.descriptors(), images };
                            monitor.borrow_mut().run(check, resources, rows);
                        }
                    }
                }
            }));
            let Err(panic) = result else { return 0 };
            context.panic.replace(Some(panic));
            1
        }
    };
}

routines!(call_avx512, "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma");
routines!(call_avx2, "avx2,fma");

/// Writes the time to all lanes.
fn tell_time(host: &Host, rows: &mut [[u32; 16]]) {
    let now = (host.clock)();
    if let [low, high] = rows {
        (*low, *high) = ([now as u32; 16], [(now >> 32) as u32; 16]);
    }
}

/// Prints a message for each active lane.
fn print(host: &Host, messages: &[Message], message: u32, rows: &[[u32; 16]]) {
    let Some((active, words)) = rows.split_first() else { return };
    for lane in (0..16).filter(|&lane| active[lane] != 0) {
        let words: smallvec::SmallVec<[u32; 16]> = words.iter().map(|row| row[lane]).collect();
        host.print(messages, message, &words);
    }
}

/// Address-range lookup: the buffer number that holds each lane's address, and the offset in it.
fn buffers_at(buffers: &[GuestSlice], descriptors: usize, rows: &mut [[u32; 16]]) {
    let [low, high, numbers, offsets] = rows else { return };
    let mut last: Option<(u64, u32)> = None;
    for lane in 0..numbers.len() {
        let address = u64::from(low[lane]) | u64::from(high[lane]) << 32;
        let number = match last {
            Some((known, number)) if known == address => number,
            _ => abi::address_range_at(buffers, descriptors, address).unwrap_or(u32::MAX),
        };
        last = Some((address, number));
        let start = buffers.get(number as usize).map_or(0, |range| range.address());
        (numbers[lane], offsets[lane]) = (number, low[lane].wrapping_sub(start as u32));
    }
}

/// The return value when all workgroups are done.
const DONE: u64 = 0;

/// Decodes the position of a kernel stopped in a loop from its return value. `encode/stop.rs` has the bit areas.
fn stop(result: u64, needs: &Needs, workgroup: [u32; 3]) -> Option<abi::Stop> {
    let at = (result as u32).checked_sub(2)?;
    let (lanes, subgroup) = ((result >> 32) as u16, (result >> 48) as u32);
    let lane = lanes.trailing_zeros();
    let [x, y, _] = needs.workgroup_size;
    let index = subgroup * abi::SUBGROUP_SIZE + lane;
    let local = match needs.merged_workgroups {
        1 => [index % x.max(1), index / x.max(1) % y.max(1), index / x.max(1) / y.max(1)],
        // Merged workgroups are one-dimensional.
        _ => [index, 0, 0],
    };
    let invocation = std::array::from_fn(|i| workgroup[i].wrapping_mul(needs.workgroup_size[i]).wrapping_add(local[i]));
    let invocation = (lanes != 0).then_some(invocation);
    Some(abi::Stop { word: (at != 0).then_some(at), workgroup, invocation })
}

/// Orders all earlier stores, non-temporal ones included, before later stores.
pub(super) fn order_stores() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
