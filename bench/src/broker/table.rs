//! The result: a line for each measurement, a column for each broker, and their ratio.

use std::fmt;

/// What was measured, in the order in which it was first noted.
#[derive(Default)]
pub(crate) struct Table {
    lines: Vec<Line>,
}

struct Line {
    what: String,
    embedded: Option<f64>,
    kafka: Option<f64>,
}

impl Table {
    pub(crate) fn note(&mut self, what: &str, broker: &str, figure: f64) {
        eprintln!("{broker}: {what}: {}", shown(Some(figure)));
        let known = self.lines.iter().position(|line| line.what == what);
        let place = known.unwrap_or_else(|| {
            self.lines.push(Line { what: what.to_owned(), embedded: None, kafka: None });
            self.lines.len() - 1
        });
        let line = &mut self.lines[place];
        if broker == "kafka" { line.kafka = Some(figure) } else { line.embedded = Some(figure) }
    }
}

fn shown(figure: Option<f64>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(figure) if figure >= 1000.0 => format!("{figure:.0}"),
        Some(figure) => format!("{figure:.2}"),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| measured | embedded | Apache Kafka | embedded / Kafka |")?;
        writeln!(f, "|---|---:|---:|---:|")?;
        for Line { what, embedded, kafka } in &self.lines {
            let ratio = embedded.zip(*kafka).map(|(embedded, kafka)| embedded / kafka);
            writeln!(f, "| {what} | {} | {} | {} |", shown(*embedded), shown(*kafka), shown(ratio))?;
        }
        Ok(())
    }
}
