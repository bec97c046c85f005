//! `redrive demo`: a small shop on the embedded broker, and what becomes of its orders when things go wrong.

mod catalog;
mod desk;
mod scenes;
mod shop;
mod teller;

use std::io;

use clap::Args;

use crate::exit::Exit;
use crate::screen;
use scenes::Played;
use shop::Shop;
use teller::Teller;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive demo          watch it, scene by scene; Ctrl-C ends it
  redrive demo --once   all scenes at speed, checked: exit code 1 if one shows something else

Nothing has to be installed or running: the broker is inside this process and gone at the end.")]
pub(crate) struct Demo {
    /// Play all scenes at speed, check what each showed and print a table
    #[arg(long)]
    once: bool,
}

impl Demo {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            tokio::select! {
                played = play(self.once) => match played {
                    Ok(exit) => Ok(exit),
                    Err(error) => {
                        screen::say(&format!("error: the demo cannot go on: {error}"));
                        Ok(Exit::Failed)
                    }
                },
                () = redrive::stop_signal() => {
                    screen::say("stopped");
                    Ok(Exit::Ok)
                }
            }
        })
    }
}

async fn play(once: bool) -> Result<Exit, Box<dyn std::error::Error>> {
    let teller = Teller::new(!once);
    teller.say("a Kafka broker starts inside this process, and a shop whose orders are charged one by one");
    let shop = Shop::open(teller.clone()).await?;
    let mut played = Vec::new();
    for scene in scenes::ALL {
        teller.title(scene.name, scene.about);
        let seen = (scene.play)(&shop).await?;
        teller.say(&format!("   => {seen}"));
        teller.pause(2).await;
        played.push(Played { scene, seen });
    }
    shop.close().await?;
    let good = played.iter().all(Played::is_as_expected);
    if once {
        screen::data(&scenes::table(&played))?;
    }
    let scenes = played.len();
    teller.say(&match good {
        true => format!("all {scenes} scenes showed what they should"),
        false => "a scene did not show what it should".to_owned(),
    });
    Ok(if good { Exit::Ok } else { Exit::Failed })
}
