//! Tests of the Vulkan driver through its C edge, in one program. What forks, limits or restarts its process is alone.

mod caches;
mod chains;
mod checked;
mod common;
mod compute;
mod exports;
mod host_atomics;
mod loss;
mod messages;
mod misuse;
mod newer;
mod objects;
