//! `spelter completions` and `spelter man`: scripts and pages that are made from the definition of the command line.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use serde_json::json;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::output::Output;

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs, output: &mut Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "spelter", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end())
}

/// Writes a page for the program and for each command, `spelter-icd-install.1`, and prints their paths.
pub(crate) fn man(args: &ManArgs, output: &mut Output) -> Result<(), Failure> {
    std::fs::create_dir_all(&args.folder).map_err(|error| Failure::file(&args.folder, error))?;
    let mut program = Cli::command();
    program.build();
    let mut files = Vec::new();
    write(&program, "spelter", &args.folder, &mut files)?;
    if args.json {
        return output.json(&json!({ "files": files }));
    }
    files.iter().try_for_each(|path| output.line(path))
}

/// The page of a command, and those of its subcommands. Adds their paths.
fn write(command: &Command, name: &str, folder: &Path, files: &mut Vec<String>) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    let mut page = Vec::new();
    // A page's name has hyphens, while its text shows the command with spaces.
    let man = Man::new(command.clone()).title(name).source(concat!("spelter ", env!("CARGO_PKG_VERSION")));
    let rendered = man.render(&mut page);
    rendered.and_then(|()| std::fs::write(&path, page)).map_err(|error| Failure::file(&path, error))?;
    files.push(path.display().to_string());
    // Clap's own `help` has a page for each of these again.
    let mut commands = command.get_subcommands().filter(|command| command.get_name() != "help");
    commands.try_for_each(|command| write(command, &format!("{name}-{}", command.get_name()), folder, files))
}
