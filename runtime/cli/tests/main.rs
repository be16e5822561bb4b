//! Tests of the command line, which they run as a child, in one program.

mod bench;
mod book;
mod check;
mod check_causes;
mod check_command;
mod check_limits;
mod check_repairs;
mod check_reports;
mod check_usage;
mod common;
mod compile;
mod demo_info;
mod derive;
mod errors;
mod exec;
mod host_memory;
mod images;
mod job_arrays;
mod litmus;
mod manual;
mod options;
mod profile;
mod progress;
mod reflect;
mod run;
mod test;
