//! Columns for people.

use std::io;

use terminal_size::{Width, terminal_size_of};

use crate::bytes_text;

/// Rows under a head, each column as wide as its widest cell; the last one is not filled up. On a terminal a line is no
/// longer than that is wide.
pub(crate) fn lines(head: &[&str], rows: Vec<Vec<String>>) -> impl Iterator<Item = String> + use<> {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let most = terminal_size_of(io::stdout()).map(|(Width(width), _)| usize::from(width));
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    std::iter::once(head).chain(rows).map(move |row| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 2 - cell.chars().count()));
        }
        line.truncate(line.trim_end().len());
        if let Some(most) = most.filter(|most| line.chars().count() > *most) {
            line = bytes_text::cut(&line, most.saturating_sub(1));
        }
        line.push('\n');
        line
    })
}
