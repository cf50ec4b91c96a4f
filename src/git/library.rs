//! How libgit2 is tuned, once per process, before anything else uses it.
//!
//! The one place with `unsafe`: these calls set C globals, which libgit2 allows only before threads
//! and repositories exist. A [`std::sync::Once`] that every [`super::Repository::open`] passes
//! through guarantees it; [`trust`], the exception, says why it may come later.
#![allow(unsafe_code)]

use std::sync::Once;

/// Blobs up to this size stay in libgit2's cache: repeated reads of a source file cost a copy.
const BLOB_CACHE_LIMIT: usize = 64 << 10;
/// Trees up to this size stay in the cache: a folder of a few thousand entries still fits.
const TREE_CACHE_LIMIT: usize = 1 << 20;

/// A block of this size, let go at once, teaches glibc to keep up to twice as much for the next use. Else it
/// gives memory back to the system after every merge, and takes it up again page by page, a tenth of an
/// accept (`mallopt(3)`, `M_MMAP_THRESHOLD`: the thresholds follow the largest block that was let go).
/// The block is never touched, so it costs two system calls; another allocator makes nothing of it.
const MEMORY_TO_KEEP: usize = 8 << 20;

/// Lets libgit2 open repositories whatever user owns them. For a repository that git itself has
/// just declared safe; it holds for the rest of the process, as libgit2 knows no other way.
pub(super) fn trust() {
    // SAFETY: it stores a boolean, which libgit2 reads when it opens a repository; at worst another
    // thread's opening at this moment still goes by the old value, and fails closed.
    unsafe {
        let _ = git2::opts::set_verify_owner_validation(false);
    }
}

static TUNED: Once = Once::new();

/// Initialises libgit2 with the settings of design.md section 6; later calls cost nothing.
///
/// - Reads do not hash what they read: git does not either, and it is a third of a read's cost.
/// - Blobs and larger trees are cached.
/// - `partialclone` and `refstorage` repositories open; their refs and missing objects go through
///   `git` (see [`super::refs`], [`super::objects`]).
pub(super) fn tune() {
    TUNED.call_once(|| {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(
            MEMORY_TO_KEEP,
        )));
        git2::opts::strict_hash_verification(false);
        // SAFETY: `Once` makes this the first use of libgit2 in the process, before any thread of
        // ours; the calls copy their arguments. Failures are out of memory at start-up: the
        // defaults then stay, which are slower and stricter but correct.
        unsafe {
            let _ = git2::opts::set_cache_object_limit(git2::ObjectType::Blob, BLOB_CACHE_LIMIT);
            let _ = git2::opts::set_cache_object_limit(git2::ObjectType::Tree, TREE_CACHE_LIMIT);
            let _ = git2::opts::set_extensions(&["partialclone", "refstorage"]);
        }
    });
}
