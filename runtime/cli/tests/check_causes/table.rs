//! The causes: what the page says of each, and how its kernels are run.

/// A cause of a race in a kernel.
#[derive(Debug)]
pub(super) struct Cause {
    /// The name of its kernels.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What happens, for readers without knowledge of a memory model.
    pub(super) text: &'static str,
    /// The options of the run, without the profile.
    pub(super) options: &'static str,
    pub(super) profile: &'static str,
    /// The rule of the first finding.
    pub(super) rule: &'static str,
    pub(super) repair: &'static str,
    /// The page shows the kernel of the first one, and the report on it.
    pub(super) versions: &'static [Version],
    /// Why a language has no kernel.
    pub(super) without: &'static str,
}

/// The kernel of a cause in a language.
#[derive(Debug)]
pub(super) struct Version {
    /// That of its file.
    pub(super) extension: &'static str,
    /// A part of a reason in the report.
    pub(super) reason: &'static str,
    /// What the page says before the change.
    pub(super) how: &'static str,
    /// The options of each run of the repaired kernel, if they are not those of the cause.
    pub(super) repaired: &'static [&'static str],
}

impl Version {
    const fn new(extension: &'static str, reason: &'static str) -> Self {
        Self { extension, reason, how: "", repaired: &[] }
    }

    const fn how(self, how: &'static str) -> Self {
        Self { how, ..self }
    }

    /// The repaired kernel has other bindings, or parts of which each is run.
    const fn with_runs(self, repaired: &'static [&'static str]) -> Self {
        Self { repaired, ..self }
    }

    /// The name of the language.
    pub(super) fn language(&self) -> &'static str {
        match self.extension {
            "comp" => "GLSL",
            "wgsl" => "WGSL",
            _ => "SPIR-V",
        }
    }

    /// The name of the language for code blocks.
    pub(super) fn markdown(&self) -> &'static str {
        match self.extension {
            "comp" => "glsl",
            "wgsl" => "rust",
            _ => "text",
        }
    }

    /// The options of each run of the repaired kernel.
    pub(super) fn runs(&self, cause: &Cause) -> Vec<&'static str> {
        if self.repaired.is_empty() { vec![cause.options] } else { self.repaired.to_vec() }
    }
}

const RAW: &str = "SPELTER-RACE-RAW";
const WAR: &str = "SPELTER-RACE-WAR";
const WAW: &str = "SPELTER-RACE-WAW";

const NO_WGSL_QUALIFIERS: &str = "WGSL has no word for it: each variable in `storage` or `workgroup` is memory \
    that invocations share.";

const ONE_BINDING: &str = "--bind 0.0=zeros:256 --bind 0.2=zeros:256";

const PARTS: &[&str] = &[
    "--bind 0.0=zeros:512 --bind 0.1=zeros:512 --groups 2 --spec 0=0",
    "--bind 0.0=zeros:512 --bind 0.1=zeros:512 --groups 2 --spec 0=1",
];

const FLAG: &str = "--bind 0.0=zeros:4 --bind 0.1=zeros:4 --bind 0.2=zeros:4 --groups 2";

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        name: "no-barrier",
        title: "A barrier is missing",
        text: "The invocations of a workgroup do not run in step: one may read a word before, while or after \
            another one writes it. That some GPUs execute 32 or 64 of them together is no promise of the language. \
            A barrier is one: each invocation waits there until all of the workgroup have come.",
        options: "--bind 0.0=u32:range:64",
        profile: "--check",
        rule: RAW,
        repair: "a barrier of the workgroup between the two accesses, where all invocations execute it. The barrier \
            of a subgroup (`subgroupBarrier()`) orders the invocations of one subgroup only.",
        versions: &[
            Version::new("comp", "nothing orders the write"),
            Version::new("wgsl", "nothing orders the write"),
            Version::new("spvasm", "nothing orders the write")
                .how("`%workgroup` is the scope, 2; `%workgroup_memory` is 0x108, `AcquireRelease | WorkgroupMemory`."),
        ],
        without: "",
    },
    Cause {
        name: "next-round",
        title: "A loop needs a second barrier",
        text: "The barrier orders the two accesses of one round. Nothing keeps a fast invocation from writing for \
            the next round while a slow one still reads for this one: between the read and the write of the next \
            round there is no barrier.",
        options: "--bind 0.0=u32:range:256",
        profile: "--check",
        rule: RAW,
        repair: "a barrier at the end of the loop's body, too. (Or two tiles, which the rounds use in turn.)",
        versions: &[
            Version::new("comp", "one of them is of the next iteration of the loop"),
            Version::new("wgsl", "one of them is of the next iteration of the loop"),
            Version::new("spvasm", "one of them is of the next iteration of the loop"),
        ],
        without: "",
    },
    Cause {
        name: "other-memory",
        title: "The barrier is for other memory",
        text: "A barrier makes invocations wait, and it carries values from those that wrote them to those that \
            read them. It carries only the kinds of memory that it names. `barrier()` of GLSL and \
            `workgroupBarrier()` of WGSL name workgroup memory (`shared`, `var<workgroup>`). What was written to a \
            buffer may still be in a cache that the reader does not look into.",
        options: "--bind 0.0=zeros:256 --bind 0.1=zeros:256",
        profile: "--check",
        rule: RAW,
        repair: "the barrier for that kind of memory.",
        versions: &[
            Version::new("comp", "both invocations wait at the barrier").how(
                "the first memory barrier makes available what this invocation wrote; known devices need no more. The \
                    second one makes visible what others did, for memory that is declared `coherent`: both are \
                    needed under `spec`.",
            ),
            Version::new("wgsl", "it does not cover storage buffers")
                .how("`storageBarrier()` also makes invocations wait. For both kinds of memory write both."),
            Version::new("spvasm", "lack UniformMemory")
                .how("`UniformMemory` means all buffers. The bits are added: 0x148 is for both kinds of memory."),
        ],
        without: "",
    },
    Cause {
        name: "texels",
        title: "Texels need a barrier of their own",
        text: "Images go through other caches than buffers. A barrier carries what was stored in an image only if \
            it names images.",
        options: "--image 0.0=r32uint:64x1:zeros --bind 0.1=zeros:256",
        profile: "--check",
        rule: RAW,
        repair: "the barrier for images, and in GLSL and SPIR-V an image that is declared `coherent`.",
        versions: &[
            Version::new("comp", "it does not cover images"),
            Version::new("wgsl", "it does not cover storage textures"),
            Version::new("spvasm", "lack ImageMemory"),
        ],
        without: "",
    },
    Cause {
        name: "some-invocations",
        title: "Not all invocations reach the barrier",
        text: "A barrier waits for all invocations of the workgroup. If some have returned, or are in the other \
            branch, the behaviour is undefined: one GPU goes on at once, another one never. (This is the rule \
            `BARRIER`; it may be the consequence of a race, if what was read decided the branch.)",
        options: "--bind 0.0=zeros:256 --push u32:40",
        profile: "--check",
        rule: "SPELTER-BARRIER",
        repair: "the condition around the work, and the barrier outside of it.",
        versions: &[
            Version::new("comp", "had ended; a return before the barrier is at"),
            Version::new("wgsl", "had ended; a return before the barrier is at")
                .how("the language requires uniform control flow for barriers, and some compilers reject the kernel."),
            Version::new("spvasm", "had ended"),
        ],
        without: "",
    },
    Cause {
        name: "lost-update",
        title: "An update is lost",
        text: "The statement reads, adds and writes. Two invocations that read the same count both write that \
            count plus one, so one of the two is not counted.",
        options: "--bind 0.0=u32:range:64 --bind 0.1=zeros:16",
        profile: "--check",
        rule: WAR,
        repair: "one atomic operation in place of the statement. Atomics to the same word happen one after the other.",
        versions: &[
            Version::new("comp", "nothing orders the read"),
            Version::new("wgsl", "nothing orders the read"),
            Version::new("spvasm", "nothing orders the read"),
        ],
        without: "",
    },
    Cause {
        name: "plain-and-atomic",
        title: "One access is atomic, the other one is not",
        text: "Atomics do not race with each other, but they do with plain accesses: a compiler may repeat, split \
            or move a plain read, and a GPU may answer it from a cache that no atomic uses.",
        options: "--bind 0.0=zeros:4 --bind 0.1=zeros:256",
        profile: "--check",
        rule: RAW,
        repair: "an atomic for each access while others may change the word: it gets a value that the word had, \
            whichever. If the final value is wanted, a barrier between the last atomic and the read.",
        versions: &[
            Version::new("comp", "nothing orders the atomic update")
                .how("an atomic that changes nothing, or `atomicLoad`."),
            Version::new("spvasm", "nothing orders the atomic update"),
        ],
        without: "In WGSL this cannot be written: values of the type `atomic<u32>` have atomic operations only.",
    },
    Cause {
        name: "other-workgroup",
        title: "The other access is of another workgroup",
        text: "Workgroups run in any order. A device may start the second one when the first one has ended, or run \
            both at the same time. No barrier of a kernel waits for another workgroup.",
        options: "--bind 0.0=zeros:512 --bind 0.1=zeros:512 --groups 2",
        profile: "--check",
        rule: RAW,
        repair: "two dispatches, with a barrier of the API between them (below, mistake 1). Here they are two parts \
            of one kernel, which a constant chooses.",
        versions: &[
            Version::new("comp", "nothing orders the write").with_runs(PARTS),
            Version::new("wgsl", "nothing orders the write").with_runs(PARTS),
            Version::new("spvasm", "nothing orders the write").with_runs(PARTS),
        ],
        without: "",
    },
    Cause {
        name: "relaxed",
        title: "A flag orders nothing",
        text: "One workgroup writes data and then sets a flag; another one sees the flag and reads the data. The \
            flag itself arrives, since it is atomic. But an atomic is *relaxed* unless the program says more: the \
            data may still be in a cache of the first workgroup, or the second one may have read it earlier. A \
            write to a flag that *releases* takes along what was written before it, and a read that *acquires* \
            gets that.",
        options: FLAG,
        profile: "--check",
        rule: RAW,
        repair: "release where the flag is set, acquire where it is seen.",
        versions: &[
            Version::new("comp", "orders no other memory: it is relaxed")
                .how("a memory barrier before the flag is set, and one after it was seen."),
            Version::new("wgsl", "atomics of WGSL order no other memory")
                .how("all atomics are relaxed, so it takes two dispatches, and no flag.")
                .with_runs(&[
                    "--bind 0.0=zeros:4 --bind 0.2=zeros:4 --groups 2 --spec 0=0",
                    "--bind 0.0=zeros:4 --bind 0.2=zeros:4 --groups 2 --spec 0=1",
                ]),
            Version::new("spvasm", "does not release"),
        ],
        without: "",
    },
    Cause {
        name: "private",
        title: "The memory is private",
        text: "A compiler may keep values in registers, and a GPU in a cache of one core, unless the program says \
            that other invocations use the memory. Accesses for which it does not are *private*: no barrier and no \
            flag orders them for others. Inside of a workgroup profile `common` takes that for a note \
            ([Profiles](checking.md#profiles)), since known devices do what is meant; between workgroups it is an error.",
        options: FLAG,
        profile: "--check",
        rule: RAW,
        repair: "say that the memory is shared.",
        versions: &[
            Version::new("comp", "is not declared `coherent`"),
            Version::new("spvasm", "neither access carries NonPrivatePointer").how(
                "`NonPrivatePointer` at each access, with the Vulkan memory model; without that model `OpDecorate \
                    … Coherent` at the variable.",
            ),
        ],
        without: NO_WGSL_QUALIFIERS,
    },
    Cause {
        name: "scope",
        title: "The scope is too small",
        text: "The *scope* of an atomic says for which invocations it is one. With the scope of the workgroup it \
            may be done in a cache that only this workgroup uses, and the updates of two workgroups may overwrite \
            each other.",
        options: "--bind 0.0=zeros:4 --groups 2",
        profile: "--check",
        rule: WAW,
        repair: "a scope that includes both invocations.",
        versions: &[Version::new("comp", "reaches no farther"), Version::new("spvasm", "Workgroup scope")],
        without: "Atomics of WGSL have no scopes: they are for the whole device.",
    },
    Cause {
        name: "available",
        title: "The value does not get far enough",
        text: "Here the flag is right: it releases and acquires, so the read comes after the write. But with the \
            Vulkan memory model order is not all. The value has to be made *available*, brought to a place that \
            both workgroups can reach, and *visible*, fetched from there; the buffer is declared to be exchanged \
            inside of a workgroup only.",
        options: FLAG,
        profile: "--check",
        rule: RAW,
        repair: "make the value available and visible to the device: by the declaration of the memory, at the \
            access, or with `MakeAvailable` and `MakeVisible` in the semantics of the atomics.",
        versions: &[
            Version::new("comp", "no memory barrier makes the write"),
            Version::new("spvasm", "no operation makes the write"),
        ],
        without: NO_WGSL_QUALIFIERS,
    },
    Cause {
        name: "sizes",
        title: "Atomics of different sizes",
        text: "Two atomics are one after the other only if they have the same bytes. One of 32 bits may come \
            between the halves of one of 64 bits.",
        options: "--bind 0.0=zeros:8",
        profile: "--check",
        rule: WAW,
        repair: "the same size for all.",
        versions: &[Version::new("comp", "different bytes"), Version::new("spvasm", "different bytes")],
        without: "In WGSL an atomic has the type of its variable, so this takes two bindings of one buffer (below).",
    },
    Cause {
        name: "two-bindings",
        title: "Two bindings are the same memory",
        text: "The application has bound one buffer twice. A compiler may take two variables for two memories and \
            move an access through one past an access through the other, and by the memory model no barrier of a \
            kernel orders a write before accesses through another binding.",
        options: "--bind 0.0=zeros:256 --bind 0.1=0.0 --bind 0.2=zeros:256",
        profile: "--check",
        rule: RAW,
        repair: "one binding for all accesses, or two dispatches with a barrier of the API between them.",
        versions: &[
            Version::new(
                "comp",
                "are the same memory, but no barrier orders a write before accesses through another binding",
            )
            .with_runs(&[ONE_BINDING]),
            Version::new(
                "wgsl",
                "are the same memory, but no barrier orders a write before accesses through another binding",
            )
            .how("WebGPU rejects such a bind group, Vulkan does not.")
            .with_runs(&[ONE_BINDING]),
            Version::new(
                "spvasm",
                "are the same memory, but no barrier orders a write before accesses through another descriptor",
            )
            .with_runs(&[ONE_BINDING]),
        ],
        without: "",
    },
    Cause {
        name: "half-barrier",
        title: "A memory barrier on one side only",
        text: "`memoryBarrierBuffer(); barrier();` is what most kernels have. The first call makes available what \
            was written before; after the barrier nothing makes it visible to the reader. Known devices do that by \
            themselves, so profile `common` has a note ([Profiles](checking.md#profiles)). By the letter it is an error:",
        options: "--bind 0.0=zeros:256 --bind 0.1=zeros:256",
        profile: "--check=spec",
        rule: RAW,
        repair: "a memory barrier on both sides.",
        versions: &[
            Version::new("comp", "does not cover buffers"),
            Version::new("spvasm", "lack UniformMemory")
                .how("or `UniformMemory` in the semantics of the control barrier, as above."),
        ],
        without: "`storageBarrier()` of WGSL has both sides.",
    },
];
