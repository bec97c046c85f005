//! `redrive completions SHELL`

use std::io;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "redrive", &mut script);
        screen::data(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Ok)
    }
}
