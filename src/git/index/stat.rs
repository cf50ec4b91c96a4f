//! What the index remembers of a file, so that nobody has to read it to know that it is unchanged.

/// A file's stat data, cut to 32 bits as the index holds them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatData {
    /// Change time: seconds since 1970 and nanoseconds.
    pub ctime: (u32, u32),
    /// Modification time: seconds since 1970 and nanoseconds.
    pub mtime: (u32, u32),
    /// Device.
    pub dev: u32,
    /// Inode number.
    pub ino: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes, modulo 2^32; a multiple of 2^32 other than zero is 2^31.
    pub size: u32,
}

impl StatData {
    /// Whether `other` is of the same file, unchanged.
    ///
    /// Git's comparison with `core.trustctime` and `core.checkStat` at their defaults, and the
    /// nanoseconds of both times, which Git compares only if built so. Stricter is safe: a mismatch
    /// costs a hash. The device is not compared, as in Git: it changes with each mount of network file
    /// systems and overlays. Equality proves nothing for an entry that
    /// [is racy](super::IndexFile::is_racy).
    pub fn matches(&self, other: &StatData) -> bool {
        let identity = |stat: &StatData| (stat.ino, stat.uid, stat.gid);
        self.mtime == other.mtime
            && self.ctime == other.ctime
            && self.size == other.size
            && identity(self) == identity(other)
    }
}

// The field types of `stat` differ between systems; a cast is a no-op on some.
#[allow(clippy::unnecessary_cast)]
impl From<&rustix::fs::Stat> for StatData {
    fn from(stat: &rustix::fs::Stat) -> StatData {
        StatData {
            ctime: (stat.st_ctime as u32, stat.st_ctime_nsec as u32),
            mtime: (stat.st_mtime as u32, stat.st_mtime_nsec as u32),
            dev: stat.st_dev as u32,
            ino: stat.st_ino as u32,
            uid: stat.st_uid as u32,
            gid: stat.st_gid as u32,
            size: cut_size(stat.st_size as u64),
        }
    }
}

/// The size as the index holds it (Git 2.43): zero is for empty files alone.
fn cut_size(size: u64) -> u32 {
    match size as u32 {
        0 if size != 0 => 1 << 31,
        cut => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_cut_as_git_does() {
        assert_eq!(cut_size(0), 0);
        assert_eq!(cut_size(5), 5);
        assert_eq!(cut_size(1 << 32), 1 << 31);
        assert_eq!(cut_size((1 << 32) + 7), 7);
    }

    #[test]
    fn every_field_but_the_device_counts() {
        let stat = StatData {
            ctime: (1, 2),
            mtime: (3, 4),
            dev: 5,
            ino: 6,
            uid: 7,
            gid: 8,
            size: 9,
        };
        assert!(stat.matches(&StatData { dev: 0, ..stat }));
        for other in [
            StatData {
                ctime: (1, 0),
                ..stat
            },
            StatData {
                ctime: (0, 2),
                ..stat
            },
            StatData {
                mtime: (3, 0),
                ..stat
            },
            StatData {
                mtime: (0, 4),
                ..stat
            },
            StatData { ino: 0, ..stat },
            StatData { uid: 0, ..stat },
            StatData { gid: 0, ..stat },
            StatData { size: 0, ..stat },
        ] {
            assert!(!stat.matches(&other), "{other:?}");
        }
    }
}
