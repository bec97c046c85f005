use std::fs;
use std::path::Path;

use bytes::Bytes;
use proptest::prelude::{any, prop, proptest};

use super::Journal;

fn entries(path: &Path) -> Vec<Bytes> {
    Journal::open(Some(path)).unwrap().1
}

fn written(path: &Path, entries: &[&[u8]]) -> Journal {
    let (journal, _) = Journal::open(Some(path)).unwrap();
    for entry in entries {
        journal.append(entry).unwrap();
    }
    journal
}

#[test]
fn entries_come_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    written(&path, &[b"one", b"two"]);
    written(&path, &[b"three"]);
    assert_eq!(entries(&path), ["one", "two", "three"]);
}

#[test]
fn without_a_path_nothing_is_kept() {
    let (journal, entries) = Journal::open(None).unwrap();
    journal.append(b"gone").unwrap();
    journal.rewrite([Bytes::from_static(b"gone too")]).unwrap();
    assert!(entries.is_empty());
    assert_eq!(journal.len_bytes(), 0);
}

#[test]
fn a_file_cut_at_any_byte_keeps_every_whole_entry_and_takes_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let all: [&[u8]; 3] = [b"first", b"second entry", b"3"];
    let ends: Vec<u64> = all.iter().map(|entry| written(&path, &[entry]).len_bytes()).collect();
    let content = fs::read(&path).unwrap();

    for cut in 0..=content.len() {
        fs::write(&path, &content[..cut]).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut as u64).count();
        assert_eq!(entries(&path), all[..whole], "cut at {cut}");

        written(&path, &[b"after"]);
        let mut expected = all[..whole].to_vec();
        expected.push(b"after");
        assert_eq!(entries(&path), expected, "appended after the cut at {cut}");
    }
}

#[test]
fn a_tail_of_zeros_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    written(&path, &[b"one"]);
    let mut content = fs::read(&path).unwrap();
    content.extend_from_slice(&[0; 64]);
    fs::write(&path, content).unwrap();
    assert_eq!(entries(&path), ["one"]);
}

#[test]
fn a_rewrite_leaves_the_live_entries_and_goes_on_behind_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let journal = written(&path, &[b"one", b"two", b"three"]);
    journal.rewrite([Bytes::from_static(b"two")]).unwrap();
    journal.append(b"four").unwrap();
    assert_eq!(journal.len_bytes(), fs::metadata(&path).unwrap().len());
    assert_eq!(entries(&path), ["two", "four"]);
}

#[test]
fn a_rewrite_that_never_got_its_name_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    written(&path, &[b"one"]);
    fs::write(path.with_extension("new"), b"half a rewr").unwrap();
    assert_eq!(entries(&path), ["one"]);
}

#[test]
fn an_empty_entry_is_refused() {
    let (journal, _) = Journal::open(Some(&tempfile::tempdir().unwrap().path().join("a"))).unwrap();
    assert!(journal.append(b"").is_err());
}

proptest! {
    #[test]
    fn a_damaged_byte_never_brings_an_entry_that_was_not_written_nor_loses_one_behind_it(
        all in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 1..6),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        written(&path, &slices);
        let mut content = fs::read(&path).unwrap();
        let content_len = content.len();
        let at = at.index(content_len);
        content[at] ^= flip;
        fs::write(&path, content).unwrap();
        let last = content_len - (super::HEADER + all[all.len() - 1].len());
        match Journal::open(Some(&path)) {
            Ok((_, found)) => {
                assert!(at >= last, "entries behind the damage are lost");
                assert_eq!(found, all[..all.len() - 1]);
            }
            Err(_) => assert!(at < last, "only the last entry is damaged"),
        }
    }
}

#[test]
fn damage_before_whole_entries_is_refused_and_damage_at_the_end_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let entries: Vec<Vec<u8>> = (0..4_u8).map(|number| vec![b'a' + number; 30]).collect();
    let (journal, _) = Journal::open(Some(&path)).unwrap();
    entries.iter().for_each(|entry| journal.append(entry).unwrap());
    drop(journal);
    let whole = fs::read(&path).unwrap();
    let frame = super::HEADER + 30;
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let opened = Journal::open(Some(&path));
        if at < 3 * frame {
            let error = opened.expect_err("entries behind the damage").to_string();
            assert!(error.contains("is damaged at byte"), "{error}");
            assert_eq!(fs::read(&path).unwrap(), damaged, "and nothing is touched");
        } else {
            assert_eq!(opened.unwrap().1.len(), 3);
        }
    }
}
