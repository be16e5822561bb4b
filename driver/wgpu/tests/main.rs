//! Tests of the adapter through wgpu, in one program. `devices` counts what its process has, so it is alone.

mod common;
mod documented;
mod environment;
mod examples;
mod features;
mod first;
mod labels;
mod lavapipe;
mod misuse;
mod programs;
mod textures;
