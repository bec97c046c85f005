//! Two people at once.

use redrive::Cluster;
use redrive_letters::jobs::{Options, Whereto};
use redrive_letters::replay::{Ended, Plan, Why};

use crate::ground::{all, begin, candidates, letter, on_both, put, run, text, topics, wanted};

on_both! { two_operators_with_overlapping_selections_send_no_letter_twice_and_the_second_is_told }

async fn two_operators_with_overlapping_selections_send_no_letter_twice_and_the_second_is_told(
    cluster: Cluster,
) {
    for _ in 0..5 {
        let (source, dlq) = topics(&cluster).await;
        let letters = (0..300).map(|n| letter(&source, &dlq, i32::try_from(n % 3).unwrap(), n, "k"));
        put(&cluster, letters.collect()).await;
        let all_letters = candidates(&cluster, &dlq, 3).await;
        let wanted = wanted(Whereto::Origin, Options::default());
        let replay = async |candidates| {
            let (job, plan) = begin(&cluster, &wanted, candidates).await;
            if let Some(job) = job {
                assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
            }
            plan
        };
        let (first, second) = tokio::join!(replay(&all_letters[..200]), replay(&all_letters[100..]));
        let sent = all(&cluster, &source, 3).await;
        let mut values: Vec<_> = sent.iter().map(|record| text(record.value.as_ref())).collect();
        values.sort();
        values.dedup();
        assert_eq!((sent.len(), values.len()), (300, 300), "{:?} {:?}", first.left_out, second.left_out);
        assert_eq!(told(&first) + told(&second), 100, "{:?} {:?}", first.left_out, second.left_out);
        assert!(told(&first) == 0 || told(&second) == 0, "only the later one is told");
    }
}

/// How many letters it was told that another job has.
fn told(plan: &Plan) -> u64 {
    let held = plan.left_out.iter().filter(|(why, _)| matches!(why, Why::Held(_) | Why::Sent(_)));
    held.map(|(_, count)| *count).sum()
}
