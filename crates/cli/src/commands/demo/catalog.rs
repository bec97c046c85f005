//! The catalogue: items come by one topic, their prices by another, and a price may come first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive::{Class, Classed, Cluster, Received, Subscription};

use super::shop::Result;
use super::teller::Teller;

pub(super) struct Catalog {
    items: Mutex<HashMap<String, Vec<String>>>,
    teller: Teller,
}

impl Catalog {
    pub(super) fn new(teller: Teller) -> Self {
        Self { items: Mutex::default(), teller }
    }

    /// Items and their prices, each consumed for itself.
    pub(super) async fn subscriptions(self: &Arc<Self>, cluster: &Cluster) -> Result<[Subscription; 2]> {
        cluster.create_topic("items", 1).await?;
        cluster.create_topic("prices", 1).await?;
        let items = Subscription::new("items", "catalog").auto_create(true).handler({
            let catalog = self.clone();
            move |item: Received| {
                catalog.items().entry(item.text().unwrap_or_default().to_owned()).or_default();
                async { Ok::<_, Classed>(()) }
            }
        });
        let prices = Subscription::new("prices", "catalog")
            .auto_create(true)
            .retry(Class::NotReady, "list(500ms x60)")
            .handler({
                let catalog = self.clone();
                move |price: Received| {
                    let set = catalog.set(&price);
                    async { set }
                }
            });
        Ok([items, prices])
    }

    /// Whether an item is known.
    pub(super) fn has(&self, item: &str) -> bool {
        self.items().contains_key(item)
    }

    /// The prices that an item has had.
    pub(super) fn prices(&self, item: &str) -> Vec<String> {
        self.items().get(item).cloned().unwrap_or_default()
    }

    fn set(&self, price: &Received) -> std::result::Result<(), Classed> {
        let item = String::from_utf8_lossy(price.key.as_deref().unwrap_or_default()).into_owned();
        let (text, attempt) = (price.text().unwrap_or_default(), price.attempt());
        let mut items = self.items();
        let Some(prices) = items.get_mut(&item) else {
            let told = "there is no such item yet: not ready, so it waits on the shelf";
            self.teller.say(&format!("   price of {item}: attempt {attempt}: {told}"));
            return Err(Classed::not_ready(format!("there is no item {item} yet")));
        };
        self.teller.say(&format!("   price of {item}: {text}, attempt {attempt}"));
        prices.push(text.to_owned());
        Ok(())
    }

    fn items(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
