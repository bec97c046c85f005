//! The fields of a journal entry, written and read in order: big-endian numbers, strings with a length.

use std::io;

use bytes::Bytes;

/// An entry in the making.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<u8>);

impl Fields {
    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(crate) fn bool(self, value: bool) -> Self {
        self.u8(u8::from(value))
    }

    pub(crate) fn i16(mut self, value: i16) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn i32(mut self, value: i32) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn i64(mut self, value: i64) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend_from_slice(&(value.len() as u32).to_be_bytes());
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn str(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    pub(crate) fn opt_str(self, value: Option<&str>) -> Self {
        match value {
            None => self.bool(false),
            Some(value) => self.bool(true).str(value),
        }
    }

    /// A count, then each item by `write`.
    pub(crate) fn each<T>(
        mut self,
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(Self, T) -> Self,
    ) -> Self {
        self.0.extend_from_slice(&(items.len() as u32).to_be_bytes());
        items.fold(self, write)
    }

    pub(crate) fn done(self) -> Bytes {
        Bytes::from(self.0)
    }
}

/// An entry being read.
#[derive(Debug)]
pub(crate) struct Parse<'a>(&'a [u8]);

impl<'a> Parse<'a> {
    pub(crate) fn new(entry: &'a [u8]) -> Self {
        Self(entry)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (head, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or_else(|| malformed("it ends early"))?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> io::Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn bool(&mut self) -> io::Result<bool> {
        self.u8().map(|byte| byte != 0)
    }

    pub(crate) fn i16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> io::Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    fn count(&mut self) -> io::Result<usize> {
        self.array().map(|bytes| u32::from_be_bytes(bytes) as usize)
    }

    pub(crate) fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let len = self.count()?;
        let (head, rest) = self
            .0
            .split_at_checked(len)
            .ok_or_else(|| malformed("it ends early"))?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn string(&mut self) -> io::Result<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| malformed("a string is not UTF-8"))
    }

    pub(crate) fn opt_string(&mut self) -> io::Result<Option<String>> {
        if self.bool()? {
            self.string().map(Some)
        } else {
            Ok(None)
        }
    }

    pub(crate) fn each<T, C: FromIterator<T>>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> io::Result<T>,
    ) -> io::Result<C> {
        let count = self.count()?;
        (0..count).map(|_| read(self)).collect()
    }
}

/// The error for an entry whose checksum holds and whose content does not: written by another version.
pub(crate) fn malformed(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("cannot read a journal entry: {what}"),
    )
}
