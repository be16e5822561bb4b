//! Operations of subgroups of all types, in workgroups that do not fill their last subgroup and among invocations that branches
//! chose, against loops over the invocations that take part.

mod arithmetic;
mod ballots;
mod module;
mod number;
mod shuffles;
