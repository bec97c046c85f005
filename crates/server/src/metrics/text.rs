//! The text that Prometheus reads: families with their help, samples with their labels.

use std::fmt::Write;

use redrive_core::histogram::Histogram;

/// Names and values.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A page of metrics on its way.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// The samples that follow are of this metric.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.labelled(name, labels, None);
        let _ = writeln!(self.0, " {value}");
    }

    pub(super) fn histogram(&mut self, name: &str, labels: Labels<'_>, histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.up_to() {
            self.labelled(&bucket, labels, Some(&bound.as_secs_f64().to_string()));
            let _ = writeln!(self.0, " {count}");
        }
        self.labelled(&bucket, labels, Some("+Inf"));
        let _ = writeln!(self.0, " {}", histogram.count());
        self.sample(&format!("{name}_sum"), labels, histogram.sum().as_secs_f64());
        self.sample(&format!("{name}_count"), labels, histogram.count() as f64);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }

    fn labelled(&mut self, name: &str, labels: Labels<'_>, bound: Option<&str>) {
        self.0.push_str(name);
        let mut before = '{';
        for (label, value) in labels.iter().copied().chain(bound.map(|bound| ("le", bound))) {
            self.0.push(before);
            let _ = write!(self.0, "{label}=\"");
            self.escaped(value);
            self.0.push('"');
            before = ',';
        }
        if before == ',' {
            self.0.push('}');
        }
    }

    fn escaped(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c => self.0.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn labels_are_escaped_and_buckets_add_up() {
        let mut page = Page::default();
        page.family("a", "gauge", "What it is.");
        page.sample("a", &[], 1.0);
        page.sample("a", &[("x", "one \"two\"\\\nthree")], 0.5);
        let mut histogram = Histogram::default();
        histogram.observe(Duration::from_millis(3), 2);
        page.histogram("h", &[("x", "y")], &histogram);
        let text = page.into_text();
        assert!(text.starts_with("# HELP a What it is.\n# TYPE a gauge\na 1\n"), "{text}");
        assert!(text.contains("a{x=\"one \\\"two\\\"\\\\\\nthree\"} 0.5\n"), "{text}");
        assert!(text.contains("h_bucket{x=\"y\",le=\"0.001\"} 0\n"), "{text}");
        assert!(text.contains("h_bucket{x=\"y\",le=\"0.005\"} 2\n"), "{text}");
        assert!(
            text.ends_with("h_bucket{x=\"y\",le=\"+Inf\"} 2\nh_sum{x=\"y\"} 0.006\nh_count{x=\"y\"} 2\n"),
            "{text}"
        );
    }
}
