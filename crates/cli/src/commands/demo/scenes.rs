//! The scenes: each makes something happen, waits for what follows and says what it saw.

use std::collections::BTreeSet;
use std::pin::Pin;

use redrive::delayed::Standing;

use super::shop::{Charge, Result, Shop};

type Playing<'a> = Pin<Box<dyn Future<Output = Result<String>> + 'a>>;

/// One scene.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) expected: &'static str,
    pub(super) play: fn(&Shop) -> Playing<'_>,
}

pub(super) const ALL: &[Scene] = &[
    Scene {
        name: "poison",
        about: "one order can never be charged; its neighbours go on",
        expected: "charged 1 2 4; letter of orders/0/2, permanent, after 1 attempt, with 17 headers",
        play: |shop| Box::pin(poison(shop)),
    },
    Scene {
        name: "flaky",
        about: "a call fails twice and then works; the customer's next order waits its turn",
        expected: "charged 5 7 at attempt 1, 6 at attempt 3, 8 after 6; no letter",
        play: |shop| Box::pin(flaky(shop)),
    },
    Scene {
        name: "outage",
        about: "the payment provider is away for a while; the flow waits and goes on by itself",
        expected: "stopped while it was away; then charged 9 10 11 12, each customer in order; no letter",
        play: |shop| Box::pin(outage(shop)),
    },
    Scene {
        name: "early",
        about: "prices come before their item does; they wait on the shelf, in order, and other items pass",
        expected: "bowl priced at once; 2 prices of kettle waited, one behind the other; then 12 and 15; no letter",
        play: |shop| Box::pin(early(shop)),
    },
    Scene {
        name: "letters",
        about: "nine more orders can never be charged; the dead letters are grouped by their causes",
        expected: "10 open letters of 3 causes: 6 voucher # is not accepted; 3 there is no such customer; 1 no order",
        play: |shop| Box::pin(dead_letters(shop)),
    },
    Scene {
        name: "replay",
        about: "one cause is fixed; its letters are sent back as a job, two of them first, and what became of each is told",
        expected: "6 sent, 2 of them first; 5 succeeded, 1 failed again; charged 13 14 15 16 17, each once; 5 letters are open",
        play: |shop| Box::pin(replay(shop)),
    },
];

async fn poison(shop: &Shop) -> Result<String> {
    let before = shop.charges().len();
    shop.order("order 1", "ann", "a book").await?;
    shop.order("order 2", "bob", "a chair").await?;
    shop.order("order 3", "nobody", "a ghost").await?;
    shop.order("order 4", "bob", "a table").await?;
    let charges = shop.charged(before, 3).await?;
    let letter = shop.letter().await?;
    let header = |name: &str| letter.headers.text(name).unwrap_or("nothing");
    shop.teller.say("   the dead letter tells what happened:");
    for header in letter.headers.iter() {
        let value = String::from_utf8_lossy(header.value.as_deref().unwrap_or_default());
        shop.teller.say(&format!("      {}: {value}", header.name));
    }
    Ok(format!(
        "charged {}; letter of {}, {}, after {} attempt, with {} headers",
        numbers(&charges),
        header("redrive-origin"),
        header("redrive-reason"),
        header("redrive-attempt"),
        letter.headers.iter().len(),
    ))
}

async fn flaky(shop: &Shop) -> Result<String> {
    let (before, letters) = (shop.charges().len(), letters(shop).await?);
    shop.order("order 5", "ann", "a pen").await?;
    shop.order("order 6", "bob", "a moody lamp").await?;
    shop.order("order 7", "cid", "a rug").await?;
    shop.order("order 8", "bob", "a bulb").await?;
    let charges = shop.charged(before, 4).await?;
    let at_once: Vec<_> =
        charges.iter().filter(|charge| charge.attempt == 1 && charge.customer != "bob").collect();
    let moody = charges.iter().position(|charge| charge.order == "order 6");
    let next = charges.iter().position(|charge| charge.order == "order 8");
    Ok(format!(
        "charged {} at attempt 1, 6 at attempt {}, 8 {} 6; {}",
        sorted(at_once.into_iter()),
        moody.map_or(0, |index| charges[index].attempt),
        if next > moody { "after" } else { "before" },
        more_letters(shop, letters).await?,
    ))
}

async fn outage(shop: &Shop) -> Result<String> {
    let (before, letters) = (shop.charges().len(), letters(shop).await?);
    shop.provider(false);
    shop.order("order 9", "ann", "a cup").await?;
    shop.order("order 10", "bob", "a plate").await?;
    shop.order("order 11", "ann", "a spoon").await?;
    shop.order("order 12", "bob", "a fork").await?;
    let status = shop.until("the outage is noticed", |status| !status.is_ready()).await?;
    for problem in &status.problems {
        shop.teller.say(&format!("   not ready: {}; {}", problem.what, problem.remedy));
    }
    let stopped = shop.charges().len() == before;
    shop.teller.pause(2).await;
    shop.provider(true);
    let charges = shop.charged(before, 4).await?;
    shop.until("ready again", redrive::Status::is_ready).await?;
    let in_order = ["ann", "bob"].iter().all(|customer| {
        let theirs = charges.iter().filter(|charge| charge.customer == *customer);
        theirs.map(number).is_sorted()
    });
    Ok(format!(
        "{} while it was away; then charged {}, each customer {}; {}",
        if stopped { "stopped" } else { "not stopped" },
        sorted(charges.iter()),
        if in_order { "in order" } else { "out of order" },
        more_letters(shop, letters).await?,
    ))
}

async fn early(shop: &Shop) -> Result<String> {
    shop.price("kettle", "12").await?;
    shop.price("kettle", "15").await?;
    shop.create("bowl").await?;
    shop.price("bowl", "3").await?;
    shop.until_prices("two prices wait", |status| status.counts.shelved >= 2).await?;
    let others = shop.priced("bowl", 1).await?.len();
    let waiting = shop.waiting().await?;
    shop.teller.say("   redrive delayed list:");
    for one in &waiting {
        let standing = match one.standing {
            Standing::Behind { leader } => format!("behind offset {leader}"),
            Standing::First | Standing::Closed { .. } => "first of its lane".to_owned(),
        };
        let error = one.error_message.as_deref().unwrap_or("not tried yet");
        shop.teller.say(&format!("      {}: {} attempts, {standing}, {error}", one.origin, one.attempts));
    }
    let behind = waiting.iter().filter(|one| matches!(one.standing, Standing::Behind { .. })).count();
    shop.teller.pause(2).await;
    shop.create("kettle").await?;
    let prices = shop.priced("kettle", 2).await?;
    let status = shop.until_prices("all is done", |status| status.in_memory == 0).await?;
    Ok(format!(
        "bowl priced {}; {} prices of kettle waited, {}; then {}; {}",
        if others == 1 { "at once" } else { "late" },
        waiting.len(),
        if behind == 1 { "one behind the other" } else { "side by side" },
        prices.join(" and "),
        if status.counts.buried == 0 { "no letter" } else { "letters" },
    ))
}

async fn dead_letters(shop: &Shop) -> Result<String> {
    let before = letters(shop).await?;
    for (number, customer, voucher) in VOUCHERS {
        let item = format!("a gift for voucher {voucher}");
        shop.order(&format!("order {number}"), customer, &item).await?;
    }
    shop.order("order 19", "nobody", "a shadow").await?;
    shop.order("order 20", "nobody", "an echo").await?;
    shop.garbage("{ order").await?;
    shop.until("nine more letters", |status| status.counts.buried == before + 9).await?;
    let groups = shop.desk.groups().await?;
    let told = groups.iter().map(|group| match &group.message {
        message if message.contains("line") => format!("{} no order", group.open),
        message => format!("{} {message}", group.open),
    });
    let told: Vec<String> = told.collect();
    let open: u64 = groups.iter().map(|group| group.open).sum();
    Ok(format!("{open} open letters of {} causes: {}", groups.len(), told.join("; ")))
}

/// Orders that are paid with vouchers, the last of which has expired.
const VOUCHERS: [(u32, &str, u32); 6] =
    [(13, "dora", 17), (14, "emil", 23), (15, "fay", 31), (16, "gus", 48), (17, "hal", 55), (18, "ida", 404)];

async fn replay(shop: &Shop) -> Result<String> {
    let before = shop.charges().len();
    shop.fix();
    let groups = shop.desk.groups().await?;
    let vouchers = groups.iter().find(|group| group.message.starts_with("voucher"));
    let vouchers = vouchers.ok_or("there are no letters of vouchers")?;
    let (first, counts) = shop.desk.replay(vouchers.failure, 2, "fixed in 1.4").await?;
    let charges = &shop.charges()[before..];
    let different: BTreeSet<u32> = charges.iter().map(number).collect();
    let left = shop.desk.groups().await?;
    let open: u64 = left.iter().map(|group| group.open).sum();
    let redrive_letters::jobs::Counts { sent, handled, buried, .. } = counts;
    Ok(format!(
        "{sent} sent, {first} of them first; {handled} succeeded, {buried} failed again; charged {}, {}; {open} letters are open",
        numbers(charges),
        if different.len() == charges.len() { "each once" } else { "some twice" },
    ))
}

async fn letters(shop: &Shop) -> Result<u64> {
    Ok(shop.until("a status", |_| true).await?.counts.buried)
}

async fn more_letters(shop: &Shop, before: u64) -> Result<String> {
    // Nothing of the scene is under way any more, so no letter can follow.
    let status = shop.until("everything is done", |status| status.in_memory == 0).await?;
    Ok(match status.counts.buried - before {
        0 => "no letter".to_owned(),
        more => format!("{more} letters"),
    })
}

fn number(charge: &Charge) -> u32 {
    charge.order.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn numbers(charges: &[Charge]) -> String {
    sorted(charges.iter())
}

fn sorted<'a>(charges: impl Iterator<Item = &'a Charge>) -> String {
    let mut numbers: Vec<_> = charges.map(number).collect();
    numbers.sort_unstable();
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// A scene that was played.
pub(super) struct Played {
    pub(super) scene: &'static Scene,
    pub(super) seen: String,
}

impl Played {
    pub(super) fn is_as_expected(&self) -> bool {
        self.seen == self.scene.expected
    }
}

/// The scenes with what was expected and seen, as a table.
pub(super) fn table(played: &[Played]) -> String {
    let width = |column: fn(&Played) -> &str, title: &str| {
        played.iter().map(|played| column(played).chars().count()).max().unwrap_or(0).max(title.len())
    };
    let (name, expected) =
        (width(|played| played.scene.name, "scene"), width(|played| played.scene.expected, "expected"));
    let mut table = format!("{:name$}  {:expected$}  seen\n", "scene", "expected");
    for played in played {
        let seen = if played.is_as_expected() { "the same" } else { &played.seen };
        table
            .push_str(&format!("{:name$}  {:expected$}  {seen}\n", played.scene.name, played.scene.expected));
    }
    table
}
