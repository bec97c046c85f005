//! What was measured, as a table.

use crate::passes::Pass;

#[derive(Default)]
pub(crate) struct Table(Vec<String>);

impl Table {
    pub(crate) fn compare(&mut self, what: &str, pass: &Pass, other: &str, measure: &Pass) {
        self.0.push(format!(
            "| {what} | {:.0}k/s, {:.2} CPU s/M | {other}: {:.0}k/s, {:.2} CPU s/M | {:.2} | {:.2} |",
            pass.rate() / 1e3,
            pass.processor_per_million(),
            measure.rate() / 1e3,
            measure.processor_per_million(),
            pass.rate() / measure.rate(),
            pass.processor_per_million() / measure.processor_per_million(),
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
