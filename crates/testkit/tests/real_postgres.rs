//! On a real PostgreSQL: the one thing that everything about waiting records in a table rests on.

use redrive_testkit::postgres;
use tokio_postgres::{Client, NoTls};

async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn two_workers_that_skip_locked_rows_never_take_the_same_one() {
    let Some(address) = postgres() else { return };
    let (mut one, mut two) = (connect(&address).await, connect(&address).await);
    let table = format!("rig_{}", std::process::id());
    let setup = format!("CREATE TABLE {table} (id int); INSERT INTO {table} SELECT generate_series(1, 3)");
    one.batch_execute(&setup).await.unwrap();
    let take = format!("SELECT id FROM {table} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED");
    let (first, second) = (one.transaction().await.unwrap(), two.transaction().await.unwrap());
    let taken: i32 = first.query_one(&take, &[]).await.unwrap().get(0);
    let other: i32 = second.query_one(&take, &[]).await.unwrap().get(0);
    assert_eq!((taken, other), (1, 2));
    drop((first, second));
    one.batch_execute(&format!("DROP TABLE {table}")).await.unwrap();
}
