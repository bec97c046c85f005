//! What was measured, as a table.

use crate::median;
use crate::passes::Pass;

#[derive(Default)]
pub(crate) struct Table(Vec<String>);

impl Table {
    /// Two that took turns. Their ratio is the median of the ratios within a turn, since a machine is never as fast
    /// in one minute as in the next.
    pub(crate) fn compare(&mut self, what: &str, passes: Vec<Pass>, other: &str, measures: Vec<Pass>) {
        let turns = || passes.iter().zip(&measures);
        let rates = middle(turns().map(|(pass, measure)| pass.rate() / measure.rate()));
        let costs =
            turns().map(|(pass, measure)| pass.processor_per_million() / measure.processor_per_million());
        let costs = middle(costs);
        let (pass, measure) = (median(passes), median(measures));
        self.0.push(format!(
            "| {what} | {:.0}k/s, {:.2} CPU s/M | {other}: {:.0}k/s, {:.2} CPU s/M | {rates:.2} | {costs:.2} |",
            pass.rate() / 1e3,
            pass.processor_per_million(),
            measure.rate() / 1e3,
            measure.processor_per_million(),
        ));
    }

    pub(crate) fn against(&mut self, what: &str, pass: &Pass, other: &str, rate: f64) {
        self.0.push(format!(
            "| {what} | {:.0}/s, {:.2} CPU s/M | {other}: {rate:.0}/s | {:.3} | |",
            pass.rate(),
            pass.processor_per_million(),
            pass.rate() / rate,
        ));
    }

    pub(crate) fn memory(&mut self, pass: &Pass) {
        let steps: Vec<String> = pass.memory.iter().map(|megabytes| format!("{megabytes:.0}")).collect();
        self.0.push(format!(
            "| {} records, {} letters: resident MB at each tenth | {} | | | |",
            pass.records,
            pass.letters,
            steps.join(" ")
        ));
    }

    pub(crate) fn print(&self) {
        println!("| measured | worker | beside | ratio of rates | ratio of CPU |\n|---|---:|---:|---:|---:|");
        for row in &self.0 {
            println!("{row}");
        }
    }
}

fn middle(all: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = all.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
