//! The shop: orders come in by Kafka, a payment provider charges them, and both can misbehave.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive::delayed::{Delayed, Keep, View};
use redrive::{
    Class, Classed, Clock, Cluster, Outgoing, Publisher, Publishing, Reader, Received, Record, Running,
    Status, Subscription, Worker,
};
use serde_json::json;

use super::catalog::Catalog;
use super::desk::Desk;
use super::teller::Teller;

/// How long a scene waits for something that must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// An order that was charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Charge {
    pub(super) order: String,
    pub(super) customer: String,
    pub(super) attempt: u32,
}

/// The payment provider.
struct Provider {
    is_up: AtomicBool,
    /// Whether it knows of vouchers, which came up only after it was written.
    knows_vouchers: AtomicBool,
    charges: Mutex<Vec<Charge>>,
    teller: Teller,
}

pub(super) struct Shop {
    pub(super) teller: Teller,
    pub(super) desk: Desk,
    cluster: Cluster,
    publisher: Publisher,
    provider: Arc<Provider>,
    catalog: Arc<Catalog>,
    running: Running,
    letters: Mutex<i64>,
}

impl Shop {
    pub(super) async fn open(teller: Teller) -> Result<Self> {
        let cluster = Cluster::open("embedded").await?;
        cluster.create_topic("orders", 1).await?;
        let provider = Arc::new(Provider {
            is_up: AtomicBool::new(true),
            knows_vouchers: AtomicBool::new(false),
            charges: Mutex::default(),
            teller: teller.clone(),
        });
        let orders = Subscription::new("orders", "billing")
            .auto_create(true)
            .retry(Class::Transient, "list(200ms x2, 1s)")
            .retry(Class::Outage, "exponential(250ms..1s x2)")
            .handler_name("charge")
            .handler({
                let provider = provider.clone();
                move |order: Received| {
                    let provider = provider.clone();
                    async move { provider.charge(&order) }
                }
            });
        let catalog = Arc::new(Catalog::new(teller.clone()));
        let [items, prices] = catalog.subscriptions(&cluster).await?;
        let worker = Worker::new(&cluster).service("shop").subscribe(orders);
        let running = worker.subscribe(items).subscribe(prices).start().await?;
        let publisher = Publisher::new(cluster.settings(), &Publishing::default())?;
        let desk = Desk::new(cluster.settings(), teller.clone());
        Ok(Self { teller, desk, cluster, publisher, provider, catalog, running, letters: Mutex::new(0) })
    }

    /// An order arrives.
    pub(super) async fn order(&self, order: &str, customer: &str, item: &str) -> Result<()> {
        self.teller.say(&format!("   {order}: {customer} orders {item}"));
        let value = json!({ "order": order, "customer": customer, "item": item });
        let topic = "orders".parse()?;
        self.publisher.publish(Outgoing::to(topic).key(customer.to_owned()).value(value.to_string())).await?;
        Ok(())
    }

    /// Something arrives that is no order.
    pub(super) async fn garbage(&self, text: &str) -> Result<()> {
        self.teller.say(&format!("   something arrives that is no order: {text}"));
        self.send("orders", "nobody knows", text).await
    }

    /// The next version of the payment provider is released.
    pub(super) fn fix(&self) {
        self.teller.say("   version 1.4 is released: it knows of vouchers");
        self.provider.knows_vouchers.store(true, Ordering::SeqCst);
    }

    /// An item is made known.
    pub(super) async fn create(&self, item: &str) -> Result<()> {
        self.teller.say(&format!("   item: {item} is created"));
        self.send("items", item, item).await?;
        // Items and prices come by topics of their own: what is sent after this must not be consumed before it.
        self.until_catalog(&format!("{item} is not in the catalogue in time"), |catalog| {
            catalog.has(item).then_some(())
        })
        .await
    }

    /// An item gets a price.
    pub(super) async fn price(&self, item: &str, price: &str) -> Result<()> {
        self.teller.say(&format!("   price: {item} shall cost {price}"));
        self.send("prices", item, price).await
    }

    async fn send(&self, topic: &str, key: &str, value: &str) -> Result<()> {
        let record = Outgoing::to(topic.parse()?).key(key.to_owned()).value(value.to_owned());
        self.publisher.publish(record).await?;
        Ok(())
    }

    /// Waits until an item has had this many prices, and gives them in their order.
    pub(super) async fn priced(&self, item: &str, count: usize) -> Result<Vec<String>> {
        self.until_catalog(&format!("{item} had not {count} prices in time"), |catalog| {
            Some(catalog.prices(item)).filter(|prices| prices.len() >= count)
        })
        .await
    }

    async fn until_catalog<T>(&self, late: &str, look: impl Fn(&Catalog) -> Option<T>) -> Result<T> {
        let clock = Clock::system();
        let deadline = clock.now().steady + PATIENCE;
        loop {
            match look(&self.catalog) {
                Some(found) => return Ok(found),
                None if clock.now().steady > deadline => return Err(late.into()),
                None => clock.sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// What waits on the shelf of the prices.
    pub(super) async fn waiting(&self) -> Result<Vec<Delayed>> {
        let all: Keep = Arc::new(|_| true);
        let shelf = "prices.catalog.shelf".parse()?;
        let view = View::read(self.cluster.settings(), shelf, &[], all, |_| {}).await?;
        Ok(view.records())
    }

    /// The payment provider goes away or comes back.
    pub(super) fn provider(&self, is_up: bool) {
        self.teller.say(if is_up {
            "   the payment provider is back"
        } else {
            "   the payment provider goes away"
        });
        self.provider.is_up.store(is_up, Ordering::SeqCst);
    }

    /// Waits until this many orders were charged since the scene began, and gives them.
    pub(super) async fn charged(&self, before: usize, count: usize) -> Result<Vec<Charge>> {
        let clock = Clock::system();
        let deadline = clock.now().steady + PATIENCE;
        loop {
            let charges = self.charges();
            if charges.len() >= before + count {
                return Ok(charges[before..].to_vec());
            }
            if clock.now().steady > deadline {
                return Err(format!(
                    "only {} of {count} orders were charged in time",
                    charges.len() - before
                )
                .into());
            }
            clock.sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) fn charges(&self) -> Vec<Charge> {
        self.provider.charges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next dead letter.
    pub(super) async fn letter(&self) -> Result<Record> {
        let offset = *self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        let reader =
            Reader::from(self.cluster.settings(), format!("orders.billing.dlq/0/{offset}").parse()?)?;
        let clock = Clock::system();
        let letter = tokio::select! {
            letter = reader.next() => letter?,
            () = clock.sleep(PATIENCE) => return Err("the dead letter did not come in time".into()),
        };
        *self.letters.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        // It is there before the worker tells of it: the next scene must not count it.
        let count = u64::try_from(offset + 1)?;
        self.until("the letter is counted", |status| status.counts.buried >= count).await?;
        Ok(letter)
    }

    /// Waits until the worker's state is so.
    pub(super) async fn until(&self, what: &str, is_so: impl FnMut(&Status) -> bool) -> Result<Status> {
        self.until_status(0, what, is_so).await
    }

    /// As [`Self::until`], of the subscription to the prices.
    pub(super) async fn until_prices(
        &self,
        what: &str,
        is_so: impl FnMut(&Status) -> bool,
    ) -> Result<Status> {
        self.until_status(2, what, is_so).await
    }

    async fn until_status(
        &self,
        subscription: usize,
        what: &str,
        is_so: impl FnMut(&Status) -> bool,
    ) -> Result<Status> {
        let mut status = self.running.statuses()[subscription].clone();
        let clock = Clock::system();
        tokio::select! {
            found = status.wait_for(is_so) => Ok(found?.clone()),
            () = clock.sleep(PATIENCE) => Err(format!("not in time: {what}").into()),
        }
    }

    pub(super) async fn close(self) -> Result<()> {
        Ok(self.running.stop().await?)
    }
}

impl Provider {
    /// Why an order that is paid with a voucher is refused. One that has expired is no good in any version.
    fn refuses(&self, item: &str) -> Option<String> {
        let (_, voucher) = item.split_once("for voucher ")?;
        let knows = self.knows_vouchers.load(Ordering::SeqCst);
        (!knows || voucher == "404").then(|| format!("voucher {voucher} is not accepted"))
    }

    fn charge(&self, order: &Received) -> std::result::Result<(), Classed> {
        let value: serde_json::Value =
            match serde_json::from_slice(order.value.as_deref().unwrap_or_default()) {
                Ok(value) => value,
                Err(error) => return Err(Classed::permanent(error)),
            };
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let (id, customer, attempt) = (text("order"), text("customer"), order.attempt());
        let failed = |told: &str| self.teller.say(&format!("   {id}: attempt {attempt}: {told}"));
        if !self.is_up.load(Ordering::SeqCst) {
            failed("connection refused: an outage, so everything waits");
            return Err(Classed::outage("connection refused"));
        }
        if customer == "nobody" {
            failed("there is no such customer: permanent, so no further try will help");
            return Err(Classed::permanent("there is no such customer"));
        }
        if let Some(why) = self.refuses(&text("item")) {
            failed(&format!("{why}: permanent"));
            return Err(Classed::permanent(why));
        }
        if text("item") == "a moody lamp" && attempt < 3 {
            failed("the connection was reset: transient, so it is tried again in place");
            return Err(Classed::transient("the connection was reset"));
        }
        self.teller.say(&format!("   {id}: charged to {customer}, attempt {attempt}"));
        let charge = Charge { order: id, customer, attempt };
        self.charges.lock().unwrap_or_else(PoisonError::into_inner).push(charge);
        Ok(())
    }
}
