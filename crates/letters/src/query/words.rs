//! Words of an error text: asked for all together, found in any order.

/// What is asked for: words, and texts that must be there as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Words {
    words: Vec<String>,
    phrases: Vec<String>,
}

impl Words {
    /// `connection "timed out"`: two words anywhere, and these two side by side.
    pub(crate) fn of(text: &str) -> Self {
        let mut asked = Self::default();
        for (index, part) in text.split('"').enumerate() {
            asked.words.extend(split(part));
            if index % 2 == 1 && !part.trim().is_empty() {
                asked.phrases.push(part.trim().to_lowercase());
            }
        }
        asked
    }

    /// As the full-text index is asked; none if there is not a word.
    pub(crate) fn question(&self) -> Option<String> {
        let quoted: Vec<_> = self.words.iter().map(|word| format!("\"{word}\"")).collect();
        (!quoted.is_empty()).then(|| quoted.join(" AND "))
    }

    /// Whether these texts together say all of it.
    pub(crate) fn are_in(&self, error_type: &str, message: &str) -> bool {
        let said: Vec<String> = split(error_type).chain(split(message)).collect();
        let lower = message.to_lowercase();
        let type_lower = error_type.to_lowercase();
        self.words.iter().all(|word| said.contains(word))
            && self.phrases.iter().all(|phrase| lower.contains(phrase) || type_lower.contains(phrase))
    }
}

fn split(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_order_and_phrases_as_they_are() {
        let asked = Words::of("refused \"db-1 said\"");
        assert_eq!(asked.question().as_deref(), Some("\"refused\" AND \"db\" AND \"1\" AND \"said\""));
        assert!(asked.are_in("io.Refused", "db-1 said no"));
        assert!(!asked.are_in("io.Refused", "said db-1"));
        assert!(!Words::of("ref").are_in("io.Refused", ""), "whole words");
        assert!(Words::of("größe").are_in("", "Die GRÖßE"));
        assert_eq!(Words::of(" - ").question(), None);
    }
}
