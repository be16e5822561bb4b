//! Subgroup operations of all types, in workgroups that do not fill their last subgroup and under branches, compared
//! with loops over the invocations that take part.

mod arithmetic;
mod ballots;
mod module;
mod number;
mod shuffles;
