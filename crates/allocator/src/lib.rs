//! How the programs take memory and give it back. A library must not choose that for its users; a program may.
//!
//! Records are made on one thread and freed on another: the system's allocator takes more for that.

pub use mimalloc::MiMalloc;

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay` of the second version, which has no name in Rust.
const PURGE_DELAY: mi_option_t = 15;

/// How long memory that was freed is kept for whoever needs some next, in milliseconds; where a whole segment is free, ten
/// times as long. With the 10 of the allocator a worker under load goes on giving back what it takes again at once, for a
/// sixth of its time.
const KEPT: c_long = 1_000;

/// Keeps what was freed for a moment, unless the environment says otherwise (`MIMALLOC_PURGE_DELAY`). To be called first.
#[allow(unsafe_code, reason = "the allocator's options are C")]
pub fn keep_for_a_moment() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: the number is one of an option, and any thread may set one at any time.
        unsafe { mi_option_set(PURGE_DELAY, KEPT) };
    }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::{mi_option_get, mi_option_use_numa_nodes};

    use super::*;

    #[global_allocator]
    static ALLOCATOR: MiMalloc = MiMalloc;

    #[test]
    #[allow(unsafe_code, reason = "the allocator's options are C")]
    fn the_option_is_the_one_that_is_meant() {
        // In the header it stands before this one, which has a name in Rust.
        assert_eq!(PURGE_DELAY + 1, mi_option_use_numa_nodes);
        keep_for_a_moment();
        // SAFETY: as above.
        let kept = unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(kept, std::env::var("MIMALLOC_PURGE_DELAY").map_or(KEPT, |text| text.parse().unwrap()));
    }
}
