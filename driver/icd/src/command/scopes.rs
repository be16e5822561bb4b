//! Checks of the stages and accesses of barriers. They have no effect, since a barrier orders everything: a barrier
//! with stages that a compute queue does not have, or with accesses that its stages do not perform, is reported and
//! recorded.

use ash::vk::{AccessFlags2 as A, PipelineStageFlags2 as S};

use crate::error::{Error, require};
use crate::message;
use crate::options::Options;

/// A synchronization scope of a barrier, with the names for messages.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    pub(super) stages: S,
    pub(super) access: A,
    pub(super) of: Rules,
}

/// The valid-usage IDs of a command or structure for one scope.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) call: &'static str,
    pub(super) name: &'static str,
    /// The ID for stages that the queue does not have.
    pub(super) stages: &'static str,
    /// The ID for an access that none of the stages performs; if it ends in `-`, the access's number follows.
    pub(super) access: &'static str,
}

/// The single stages of a compute queue, of both synchronization APIs.
const COMPUTE: S = S::from_raw(
    S::TOP_OF_PIPE.as_raw()
        | S::BOTTOM_OF_PIPE.as_raw()
        | S::DRAW_INDIRECT.as_raw()
        | S::COMPUTE_SHADER.as_raw()
        | S::ALL_TRANSFER.as_raw()
        | S::COPY.as_raw()
        | S::CLEAR.as_raw()
        | S::HOST.as_raw()
        | S::ALL_COMMANDS.as_raw()
        | S::CONDITIONAL_RENDERING_EXT.as_raw(),
);

/// The stage of shader accesses.
const SHADER: S = S::COMPUTE_SHADER;
/// The stages of transfer accesses.
const TRANSFER: S = S::from_raw(S::ALL_TRANSFER.as_raw() | S::COPY.as_raw() | S::CLEAR.as_raw());

/// Each access with the stages that perform it (none for graphics stages), and the number of its valid-usage ID for the
/// `2` structures.
const ACCESSES: [(A, S, &str); 19] = [
    (A::INDIRECT_COMMAND_READ, S::DRAW_INDIRECT, "03900"),
    (A::INDEX_READ, S::NONE, "03901"),
    (A::VERTEX_ATTRIBUTE_READ, S::NONE, "03902"),
    (A::INPUT_ATTACHMENT_READ, S::NONE, "03903"),
    (A::UNIFORM_READ, SHADER, "03904"),
    (A::SHADER_SAMPLED_READ, SHADER, "03905"),
    (A::SHADER_STORAGE_READ, SHADER, "03906"),
    (A::SHADER_STORAGE_WRITE, SHADER, "03907"),
    (A::SHADER_READ, SHADER, "07454"),
    (A::SHADER_WRITE, SHADER, "03909"),
    (A::COLOR_ATTACHMENT_READ, S::NONE, "03910"),
    (A::COLOR_ATTACHMENT_WRITE, S::NONE, "03911"),
    (A::DEPTH_STENCIL_ATTACHMENT_READ, S::NONE, "03912"),
    (A::DEPTH_STENCIL_ATTACHMENT_WRITE, S::NONE, "03913"),
    (A::TRANSFER_READ, TRANSFER, "03914"),
    (A::TRANSFER_WRITE, TRANSFER, "03915"),
    (A::HOST_READ, S::HOST, "03916"),
    (A::HOST_WRITE, S::HOST, "03917"),
    (A::CONDITIONAL_RENDERING_READ_EXT, S::CONDITIONAL_RENDERING_EXT, "03918"),
];

/// Reports an invalid scope.
pub(super) fn check(scope: Scope) {
    // A device that claims graphics has the stages of graphics, too.
    if !Options::get().graphics
        && let Err(error) = rules(scope)
    {
        message::error(scope.of.call, &error);
    }
}

/// Reports the host stage, for commands that do not permit it.
pub(super) fn check_no_host(stages: S, call: &'static str, name: &str, vuid: &'static str) {
    if let Err(error) = require(!stages.contains(S::HOST), call, vuid, || format!("{name} has HOST")) {
        message::error(call, &error);
    }
}

fn rules(Scope { stages, access, of }: Scope) -> Result<(), Error> {
    require(COMPUTE.contains(stages), of.call, of.stages, || {
        format!("{} has {:?}, which a compute queue does not have", of.name, stages & !COMPUTE)
    })?;
    let all = stages.contains(S::ALL_COMMANDS);
    for (one, makers, number) in ACCESSES.into_iter().filter(|(one, ..)| access.contains(*one)) {
        // ALL_COMMANDS is every stage but the host's.
        let made = stages.intersects(makers) || (all && !makers.intersects(S::HOST));
        if !made {
            let vuid = if of.access.ends_with('-') { format!("{}{number}", of.access) } else { of.access.into() };
            return Err(Error::misuse(
                of.call,
                format!("access {one:?} is not performed by any of the stages {stages:?}"),
                vuid,
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_perform_their_accesses() {
        let of = Rules { call: "vkTest", name: "srcStageMask", stages: "VUID-stages", access: "VUID-access" };
        let broken = |stages, access| rules(Scope { stages, access, of }).err().map(|e| e.vuid().unwrap().to_owned());
        assert_eq!(broken(S::COMPUTE_SHADER, A::SHADER_WRITE | A::UNIFORM_READ), None);
        assert_eq!(broken(S::ALL_COMMANDS, A::MEMORY_WRITE | A::TRANSFER_READ), None);
        assert_eq!(broken(S::NONE, A::NONE), None);
        assert_eq!(broken(S::COPY | S::HOST, A::TRANSFER_WRITE | A::HOST_READ), None);
        assert_eq!(broken(S::COPY, A::SHADER_WRITE).as_deref(), Some("VUID-access"));
        assert_eq!(broken(S::ALL_COMMANDS, A::HOST_READ).as_deref(), Some("VUID-access"));
        let of = Rules { access: "VUID-new-", ..of };
        let fresh = rules(Scope { stages: S::COPY, access: A::SHADER_WRITE, of });
        assert_eq!(fresh.err().and_then(|error| error.vuid().map(str::to_owned)).as_deref(), Some("VUID-new-03909"));
        assert_eq!(broken(S::FRAGMENT_SHADER, A::NONE).as_deref(), Some("VUID-stages"));
    }
}
