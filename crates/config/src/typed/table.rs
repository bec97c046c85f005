//! Describes a table of the file once: its keys, what they hold, what they are for.

/// `"key" field: Type, need;` for each key, with its documentation above it. A field is `None` when
/// the key is absent, or when its value could not be read and a problem says why.
macro_rules! table {
    ($(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $key_doc:literal])* $key:literal $field:ident: $type:ty, $need:expr;)*
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            /// Whether every key that is there could be read.
            #[allow(dead_code, reason = "only a rule means something else without one of its keys")]
            pub(crate) whole: bool,
            $($(#[doc = $key_doc])* pub(crate) $field: Option<$crate::typed::At<$type>>,)*
        }

        impl $crate::typed::Typed for $name {
            fn shape() -> $crate::typed::Shape {
                let fields = vec![$($crate::typed::Field {
                    key: $key,
                    doc: [$($key_doc),*].map(str::trim).join(" "),
                    need: $need,
                    shape: <$type as $crate::typed::Typed>::shape,
                }),*];
                $crate::typed::Shape::Table($crate::typed::Table { doc: [$($doc),*].map(str::trim).join(" "), fields })
            }

            fn read(
                node: $crate::typed::reader::Node<'_>,
                reader: &mut $crate::typed::Reader<'_>,
            ) -> Option<Self> {
                let table = reader.expect_table(node)?;
                reader.table(table, node.span())
            }
        }

        impl $crate::typed::reader::FromTable for $name {
            fn from_table(
                table: &toml::de::DeTable<'_>,
                span: std::ops::Range<usize>,
                reader: &mut $crate::typed::Reader<'_>,
            ) -> Self {
                let before = reader.problem_count();
                let mut read = Self::default();
                let mut meant: Vec<&str> = Vec::new();
                for (key, value) in table {
                    match key.get_ref().as_ref() {
                        $($key => read.$field = $crate::typed::At::read(key, value, reader),)*
                        _ => meant.extend(reader.unknown_key(key, &[$($key),*])),
                    }
                }
                $(if $need == $crate::typed::Need::Required && !table.contains_key($key) && !meant.contains(&$key) {
                    reader.missing_key(span.clone(), $key);
                })*
                read.whole = reader.problem_count() == before;
                read
            }
        }
    };
}
