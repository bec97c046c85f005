//! What is wrong with a file: each problem at its place, printed the way compilers do it.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level as Severity, Renderer, Snippet};

use crate::secrets::{self, Excerpt, Value};

/// Whether a problem makes the configuration unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It does.
    Error,
    /// It does not, but is hardly what was meant.
    Warning,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub level: Level,
    /// The bytes of the file at fault.
    pub span: Range<usize>,
    /// What is wrong; never the value of a secret or of a variable.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Every problem of a file, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    file: String,
    problems: Vec<Problem>,
    /// What may be shown of the file beside each problem.
    excerpts: Vec<Excerpt>,
}

impl Problem {
    pub(crate) fn error(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { level: Level::Error, span, message: message.into(), help: None }
    }

    pub(crate) fn warning(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::error(span, message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Report {
    /// `values` are those of the file, if it is TOML at all.
    pub(crate) fn new(file: &str, text: &str, values: Option<&[Value]>, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.span.start, problem.level));
        let excerpts = problems.iter().map(|p| secrets::excerpt(text, values, p.span.clone())).collect();
        Self { file: file.to_owned(), problems, excerpts }
    }

    /// The problems in the order of their places.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether there is an error among them.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.count(Level::Error) > 0
    }

    /// How many problems of this level there are.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.problems.iter().filter(|problem| problem.level == level).count()
    }

    /// The report with colours, for a terminal.
    #[must_use]
    pub fn coloured(&self) -> String {
        self.render(&Renderer::styled())
    }

    fn render(&self, renderer: &Renderer) -> String {
        let shown: Vec<_> = self
            .problems
            .iter()
            .zip(&self.excerpts)
            .map(|(problem, excerpt)| self.render_one(problem, excerpt, renderer))
            .collect();
        shown.join("\n\n")
    }

    fn render_one(&self, problem: &Problem, excerpt: &Excerpt, renderer: &Renderer) -> String {
        let severity = match problem.level {
            Level::Error => Severity::ERROR,
            Level::Warning => Severity::WARNING,
        };
        let mark = AnnotationKind::Primary.span(excerpt.span.clone());
        let snippet =
            Snippet::source(&excerpt.text).line_start(excerpt.line).path(&self.file).annotation(mark);
        let title = severity.primary_title(&problem.message).element(snippet);
        let group = match &problem.help {
            Some(help) => title.element(Severity::HELP.message(help)),
            None => title,
        };
        renderer.render(&[group])
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Renderer::plain()))
    }
}

impl std::error::Error for Report {}
