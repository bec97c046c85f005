//! `redrive schema`

use std::io;

use clap::{Args, ValueEnum};

use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
pub(crate) struct Schema {
    /// A schema for editors, or the reference page for people
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Json,
    Markdown,
}

impl Schema {
    pub(crate) fn run(&self) -> io::Result<Exit> {
        let text = match self.format {
            Format::Json => format!("{:#}\n", redrive_config::json_schema()),
            Format::Markdown => redrive_config::reference(),
        };
        screen::data(&text)?;
        Ok(Exit::Ok)
    }
}
