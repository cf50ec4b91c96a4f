//! The swap itself: new content in, old content beside it, back again where it was not what was expected.

use std::thread::sleep;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use rustix::fs::{AtFlags, renameat, statat};
use rustix::io::Errno;

use super::write::{Fault, Place, Point, Probe, Spot, Swap, WorkTree};
use super::write::{exchange, keep, link, pass, rename_new, unlink};
use super::{Content, Obstacle, Seal};

/// How often names are exchanged back and forth before the user's bytes are left beside the path.
///
/// A program that writes the file in a loop may write between any two of them; against a loop as tight
/// as can be about every second turn finds nothing new.
const TURNS: usize = 64;

/// How long a file that is about to go, and that was written just before, is left alone before the
/// last look at it.
const REST: Duration = Duration::from_millis(10);
/// So many times as long where it is empty: who saves in place empties the file first, and may then
/// have to wait for the disk before the first byte is written.
const RESTS_WHEN_EMPTY: u32 = 50;

impl WorkTree<'_> {
    /// Puts prepared content (`ours`) in the place of `old`, which must stand there (`None`: nothing
    /// must). Afterwards the old content lies beside the path, to be settled.
    ///
    /// # Errors
    /// [`Fault`]; the path is as it was.
    pub fn swap(
        &self,
        spot: Spot<'_>,
        old: Option<&Seal>,
        ours: &Seal,
        probe: Probe<'_>,
    ) -> Result<Swap, Fault> {
        let place = self.place(spot)?;
        let (name, fresh, held) = (&place.name, &place.fresh, &place.held);
        let Some(old) = old else {
            pass(probe, Point::Staged)?;
            let done = rename_new(&place, fresh, name);
            return match done {
                Ok(()) => pass(probe, Point::Swapped).map(|()| Swap::Done),
                Err(Errno::EXIST) => {
                    unlink(&place, fresh)?;
                    Ok(Swap::Changed)
                }
                Err(error) => {
                    let _ = unlink(&place, fresh);
                    Err(Fault::failed("create", error))
                }
            };
        };
        if !self.holds(&place, name, old)? {
            unlink(&place, fresh)?;
            return Ok(Swap::Changed);
        }
        if self.exchange.get() {
            rename_new(&place, fresh, held).map_err(|e| Fault::failed("stage", e))?;
            pass(probe, Point::Staged)?;
            match exchange(&place, held, name) {
                Ok(()) => {
                    pass(probe, Point::Swapped)?;
                    return match self.holds(&place, held, old) {
                        Ok(true) => pass(probe, Point::Checked).map(|()| Swap::Done),
                        // Not to be read counts as changed: it goes back.
                        Ok(false) | Err(_) => self.put_back(&place, Some(ours)),
                    };
                }
                Err(Errno::NOENT) => {
                    unlink(&place, held)?;
                    return Ok(Swap::Changed);
                }
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    self.exchange.set(false);
                    renameat(
                        &place.folder,
                        held.as_bytes(),
                        &place.folder,
                        fresh.as_bytes(),
                    )
                    .map_err(|error| Fault::failed("rename", error))?;
                }
                Err(error) => {
                    let _ = unlink(&place, held);
                    return Err(Fault::failed("replace", error));
                }
            }
        }
        self.replace_by_rename(&place, old, ours, probe)
    }

    fn replace_by_rename(
        &self,
        place: &Place,
        old: &Seal,
        ours: &Seal,
        probe: Probe<'_>,
    ) -> Result<Swap, Fault> {
        let (name, fresh, held) = (&place.name, &place.fresh, &place.held);
        // A file system without links has nothing to hold on to; the last look has to do.
        let _ = link(place, name, held);
        pass(probe, Point::Staged)?;
        if !self.holds(place, name, old)? {
            unlink(place, fresh)?;
            unlink(place, held)?;
            return Ok(Swap::Changed);
        }
        renameat(
            &place.folder,
            fresh.as_bytes(),
            &place.folder,
            name.as_bytes(),
        )
        .map_err(|error| {
            let _ = unlink(place, fresh);
            let _ = unlink(place, held);
            Fault::failed("replace", error)
        })?;
        pass(probe, Point::Swapped)?;
        match self.at(place, held) {
            Ok(None) => Ok(Swap::Done),
            Ok(Some(found)) if found.seal() == *old => {
                pass(probe, Point::Checked).map(|()| Swap::Done)
            }
            _ => self.put_back(place, Some(ours)),
        }
    }

    /// Takes away what stands at a path, which must be `old`. Afterwards it lies beside the path, to
    /// be settled.
    ///
    /// # Errors
    /// [`Fault`]; the path is as it was.
    pub fn remove(&self, spot: Spot<'_>, old: &Seal, probe: Probe<'_>) -> Result<Swap, Fault> {
        let place = self.place(spot)?;
        if !self.holds(&place, &place.name, old)? {
            return Ok(Swap::Changed);
        }
        pass(probe, Point::Staged)?;
        match rename_new(&place, &place.name, &place.held) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Swap::Changed),
            Err(error) => return Err(Fault::failed("remove", error)),
        }
        pass(probe, Point::Swapped)?;
        match self.holds(&place, &place.held, old) {
            Ok(true) => pass(probe, Point::Checked).map(|()| Swap::Done),
            Ok(false) | Err(_) => self.put_back(&place, None),
        }
    }

    /// Lets the old content beside a path go, after one more look at it: if somebody wrote into it
    /// after the swap, it is put back in the place of `ours`.
    ///
    /// # Errors
    /// [`Fault`]; the old content is still beside the path.
    pub fn settle(
        &self,
        spot: Spot<'_>,
        old: Option<&Seal>,
        ours: Option<&Seal>,
        probe: Probe<'_>,
    ) -> Result<Swap, Fault> {
        let Some(old) = old else {
            return pass(probe, Point::Settled).map(|()| Swap::Done);
        };
        let place = self.place(spot)?;
        match self.at(&place, &place.held) {
            Ok(None) => {}
            Ok(Some(found)) if found.seal() == *old => unlink(&place, &place.held)?,
            _ => return self.put_back(&place, ours),
        }
        pass(probe, Point::Settled)?;
        Ok(Swap::Done)
    }

    /// Brings back what lies beside a path, where the path still holds what we put there: `ours`.
    ///
    /// # Errors
    /// [`Fault`]; the content is still beside the path.
    pub fn bring_back(&self, spot: Spot<'_>, ours: Option<&Seal>) -> Result<Swap, Fault> {
        let place = self.place(spot)?;
        self.put_back(&place, ours)
    }

    /// Puts the content beside a path back. Each exchange takes out what stood there: if it is not
    /// what we had put there last, somebody saved meanwhile, and that is the newest and goes in.
    fn put_back(&self, place: &Place, ours: Option<&Seal>) -> Result<Swap, Fault> {
        let (name, held) = (&place.name, &place.held);
        let Some(ours) = ours else {
            return match rename_new(place, held, name) {
                Ok(()) | Err(Errno::NOENT) => Ok(Swap::Changed),
                Err(_) => keep(place).map(Swap::Kept),
            };
        };
        if !self.exchange.get() {
            if !self.holds(place, name, ours)? {
                return keep(place).map(Swap::Kept);
            }
            let back = renameat(
                &place.folder,
                held.as_bytes(),
                &place.folder,
                name.as_bytes(),
            );
            return match back {
                Ok(()) => Ok(Swap::Changed),
                Err(_) => keep(place).map(Swap::Kept),
            };
        }
        let mut put = Some(ours.clone());
        for _ in 0..TURNS {
            let coming = self.at(place, held);
            match exchange(place, held, name) {
                Ok(()) => {}
                // Removed meanwhile: perhaps the first half of somebody's save; their bytes come back.
                Err(Errno::NOENT) => match rename_new(place, held, name) {
                    Ok(()) => return Ok(Swap::Changed),
                    Err(_) => continue,
                },
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    self.exchange.set(false);
                    return self.put_back(place, put.as_ref());
                }
                Err(_) => break,
            }
            if let Some(put) = &put
                && self.is_at_rest(place, put)?
            {
                unlink(place, held)?;
                return Ok(Swap::Changed);
            }
            put = coming.ok().flatten().map(|content| content.seal());
        }
        keep(place).map(Swap::Kept)
    }

    /// Whether exactly `put` lies beside a path, and nobody is in the middle of writing to it: who
    /// saves in place opens the file, empties it and then writes, perhaps across one of our exchanges.
    fn is_at_rest(&self, place: &Place, put: &Seal) -> Result<bool, Fault> {
        if !self.holds(place, &place.held, put)? {
            return Ok(false);
        }
        for _ in 0..rests(put) {
            sleep(REST);
            if !self.holds(place, &place.held, put)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Leaves what lies beside these paths alone for a moment where somebody may be writing to it
    /// still: where it was written within the second before the swap.
    pub fn rest(&self, spots: &[(Spot<'_>, &Seal)]) {
        let mut hot: Vec<_> = spots
            .iter()
            .filter(|(spot, _)| self.is_hot(*spot))
            .collect();
        for round in 0..RESTS_WHEN_EMPTY {
            hot.retain(|(spot, seal)| {
                let unchanged = |place| self.holds(&place, &place.held, seal).unwrap_or(false);
                round < rests(seal) && self.place(*spot).is_ok_and(unchanged)
            });
            if hot.is_empty() {
                return;
            }
            sleep(REST);
        }
    }

    fn is_hot(&self, spot: Spot<'_>) -> bool {
        let Ok(place) = self.place(spot) else {
            return false;
        };
        let (folder, name) = (&place.folder, place.held.as_bytes());
        // The swap itself has set the time of change, so it stands for now.
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| stat.st_ctime.saturating_sub(stat.st_mtime) <= 1)
    }

    /// What lies beside a path since a swap that was not settled.
    ///
    /// # Errors
    /// [`Obstacle`], as for [`super::state`].
    pub fn held(&self, spot: Spot<'_>) -> Result<Option<Content>, Obstacle> {
        match self.place(spot) {
            Ok(place) => self.at(&place, &place.held),
            Err(Fault::Obstacle(obstacle)) => Err(obstacle),
            Err(_) => Ok(None),
        }
    }

    /// Removes what lies beside a path: bytes that stand elsewhere.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn drop_held(&self, spot: Spot<'_>) -> Result<(), Fault> {
        match self.place(spot) {
            Ok(place) => unlink(&place, &place.held),
            Err(_) => Ok(()),
        }
    }

    /// Makes what lies beside a path the prepared content, to be swapped in again.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn reuse_held(&self, spot: Spot<'_>) -> Result<(), Fault> {
        let place = self.place(spot)?;
        let (held, fresh) = (place.held.as_bytes(), place.fresh.as_bytes());
        renameat(&place.folder, held, &place.folder, fresh)
            .map_err(|error| Fault::failed("rename", error))
    }

    /// Gives what lies beside a path a name that nothing of ours removes, and returns that name.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn keep_held(&self, spot: Spot<'_>) -> Result<BString, Fault> {
        keep(&self.place(spot)?)
    }
}

/// How many rests a content is given.
fn rests(seal: &Seal) -> u32 {
    if seal.is_empty() { RESTS_WHEN_EMPTY } else { 1 }
}
