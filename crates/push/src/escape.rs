//! Bytes as text that any header can carry: `%XX` for what is not printable ASCII, as CloudEvents has it.

/// Appends the bytes; blanks, quotes, percent signs and whatever is not printable ASCII as `%XX`.
pub(crate) fn append(bytes: &[u8], to: &mut Vec<u8>) {
    escaped(bytes, to, |byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'%'));
}

/// The same for the name of a header, where fewer characters may stand as they are.
pub(crate) fn append_name(name: &str, to: &mut Vec<u8>) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    escaped(name.as_bytes(), to, is_plain);
}

fn escaped(bytes: &[u8], to: &mut Vec<u8>, is_plain: impl Fn(u8) -> bool) {
    // As it is for nearly all.
    if bytes.iter().all(|byte| is_plain(*byte)) {
        to.extend_from_slice(bytes);
        return;
    }
    let digit = |digit: u8| b"0123456789ABCDEF"[usize::from(digit)];
    for byte in bytes {
        match is_plain(*byte) {
            true => to.push(*byte),
            false => to.extend([b'%', digit(byte >> 4), digit(byte & 15)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(bytes: &[u8]) -> String {
        let mut text = Vec::new();
        append(bytes, &mut text);
        String::from_utf8(text).unwrap()
    }

    fn name(name: &str) -> String {
        let mut text = Vec::new();
        append_name(name, &mut text);
        String::from_utf8(text).unwrap()
    }

    fn unescaped(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            if *first == b'%' {
                bytes.push(u8::from_str_radix(std::str::from_utf8(&behind[..2]).unwrap(), 16).unwrap());
                rest = &behind[2..];
            } else {
                bytes.push(*first);
                rest = behind;
            }
        }
        bytes
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        assert_eq!(value(b"order-1042,x=y;z"), "order-1042,x=y;z");
        assert_eq!(value("50% \"Köln\"\n".as_bytes()), "50%25%20%22K%C3%B6ln%22%0A");
        assert_eq!(name("X-Order_Id"), "X-Order_Id");
        assert_eq!(name("a b,c;d:ü"), "a%20b%2Cc%3Bd%3A%C3%BC");
    }

    proptest! {
        #[test]
        fn what_is_escaped_can_be_read_back(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "\\PC*") {
            let escaped = value(&bytes);
            prop_assert!(escaped.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(unescaped(&escaped), bytes);
            prop_assert_eq!(unescaped(&name(&text)), text.as_bytes());
        }
    }
}
